import { createHash } from "node:crypto";
import { access, constants, mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { CommandError } from "../commands/host.ts";
import type { Config } from "../config/config.ts";
import { isTrustedUrl } from "../config/formats.ts";

/** A CloudEvent as JSON, and where it belongs. */
export interface Line {
  readonly text: string;
  /** A name that is safe in a path. */
  readonly tenant: string;
  /** Such as 2026-01-31. */
  readonly day: string;
  /** Identifies its change, in letters that sort. */
  readonly position: string;
}

/** Where lines go. */
export interface Destination {
  /** How long lines wait for others, in milliseconds. */
  readonly batchMs: number;
  /**
   * Resolves once each line is stored so that it survives a loss of power, or the receiver has taken it.
   *
   * @param lines none: a directory is checked.
   * @param signal ends it.
   * @throws CommandError if the receiver refuses; any other error if another try may succeed.
   */
  write(lines: readonly Line[], signal: AbortSignal): Promise<void>;
}

const SOON_MS = 1000;
/** Few objects, which a bucket's owner pays for. */
const S3_BATCH_MS = 60_000;

/** Returns the destination of a directory, an `s3://` address or a URL. @throws CommandError for another text. */
export function destinationOf(to: string, config: Config): Destination {
  const { ONCEWARD_EXPORT_TOKEN: token } = config;
  if (to.startsWith("s3://")) return { batchMs: S3_BATCH_MS, write: inBucket(to, config) };
  if (isTrustedUrl(to)) return { batchMs: SOON_MS, write: (lines, signal) => post(to, lines, token, signal) };
  if (to === "" || to.includes("://"))
    throw new CommandError("--to must be a directory, s3://BUCKET/PREFIX, or an https URL without a user.");
  return {
    batchMs: SOON_MS,
    async write(lines) {
      // A disk that is not mounted.
      await access(to, constants.W_OK | constants.X_OK);
      for (const [name, own] of byTenantAndDay(lines)) await append(join(to, `${name}.jsonl`), textOf(own));
    },
  };
}

const byTenantAndDay = (lines: readonly Line[]) =>
  Map.groupBy(lines, ({ tenant, day }) => `${tenant}/${day}`);
const textOf = (lines: readonly Line[]) => lines.map(({ text }) => `${text}\n`).join("");
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** Appends lines to a file that other users cannot read, and waits for the disk. */
async function append(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  const file = await open(path, "a+", 0o640);
  try {
    const { size } = await file.stat();
    const { buffer } = await file.read({ position: Math.max(size - 1, 0), buffer: Buffer.alloc(1) });
    // A process that was killed has left a part of a line, which must not swallow the next one.
    await file.appendFile(size > 0 && buffer.toString() !== "\n" ? `\n${text}` : text);
    await file.sync();
    for (const parent of size === 0 ? ["..", "../.."] : []) {
      await using directory = await open(join(path, parent));
      await directory.sync();
    }
  } finally {
    await file.close();
  }
}

function inBucket(to: string, config: Config): Destination["write"] {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_REGION: region,
  } = config;
  const { AWS_ENDPOINT_URL_S3: endpoint = `https://s3.${region}.amazonaws.com` } = config;
  if (accessKeyId === undefined || secretAccessKey === undefined || !isTrustedUrl(endpoint))
    throw new CommandError(
      "s3:// needs AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, unless it is Amazon's, an https URL in AWS_ENDPOINT_URL_S3.",
    );
  const sessionToken = config.AWS_SESSION_TOKEN;
  const keys = { accessKeyId, secretAccessKey, region, ...(sessionToken !== undefined && { sessionToken }) };
  const parts = to.slice("s3://".length).split("/");
  return async (lines, signal) => {
    const { AwsV4Signer } = await import("aws4fetch");
    for (const [name, own] of byTenantAndDay(lines)) {
      const path = [...parts, ...name.split("/"), `${own[0]?.position}.jsonl`].filter(Boolean);
      const url = `${endpoint.replace(/\/$/, "")}/${path.map(encodeURIComponent).join("/")}`;
      const body = textOf(own);
      const headers = { "content-type": "application/x-ndjson", "x-amz-content-sha256": sha256(body) };
      // A signature is valid for 15 minutes only.
      const make = () =>
        new AwsV4Signer({ ...keys, url, body, headers, method: "PUT", service: "s3" }).sign();
      await deliver(make, signal);
    }
  };
}

async function post(
  url: string,
  lines: readonly Line[],
  token: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (lines.length === 0) return;
  const body = `[${lines.map(({ text }) => text).join(",")}]`;
  const headers = {
    "content-type": "application/cloudevents-batch+json; charset=utf-8",
    "idempotency-key": `"${sha256(body)}"`,
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  await deliver(async () => ({ url, method: "POST", headers, body }), signal);
}

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_SHOWN_CHARACTERS = 300;
/** The pauses between tries; after the last one, the batch is read again from Postgres. */
const PAUSES_MS = [1000, 2000, 4000, 8000, 16_000];
/** Statuses below 500 after which another try may succeed. */
const PASSING = [408, 425, 429];

async function deliver(
  make: () => Promise<RequestInit & { readonly url: string | URL }>,
  ending: AbortSignal,
): Promise<void> {
  for (const pauseMs of [...PAUSES_MS, 0]) {
    const { url, method = "", headers = {}, body = null } = await make();
    const signal = AbortSignal.any([ending, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]);
    const request: RequestInit = { method, headers, body, signal, redirect: "manual" };
    const answer = await fetch(url, request).catch((error: Error) => error);
    const { origin } = new URL(url);
    let failure = new Error(`${origin} could not be reached.`, { cause: answer });
    if (answer instanceof Response) {
      if (answer.ok) return await answer.body?.cancel().catch(() => {});
      failure = new Error(`${origin} answered ${answer.status}: ${await beginningOf(answer)}`);
      if (answer.status < 500 && !PASSING.includes(answer.status)) throw new CommandError(failure.message);
    }
    if (pauseMs === 0) throw failure;
    await pause(pauseMs, undefined, { signal: ending });
  }
}

/** Returns what was read of a body, as one line. */
async function beginningOf({ body }: Response): Promise<string> {
  let text = "";
  try {
    for await (const chunk of body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.length >= MAX_SHOWN_CHARACTERS) break;
    }
  } catch {
    // What has arrived is shown.
  }
  return text.slice(0, MAX_SHOWN_CHARACTERS).replace(/\s+/g, " ");
}
