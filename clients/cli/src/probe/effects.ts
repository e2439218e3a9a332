import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Endpoint } from "./endpoint.ts";
import type { Answer } from "./exchange.ts";
import { isSuccess } from "./verdict.ts";

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 4 * 1024 * 1024;
const run = promisify(execFile);

/** How the effects of operations are counted. */
export interface Effects {
  /** In words, for the report. */
  readonly how: string;
  /** Returns the number of all effects so far; undefined: they can't be counted. @throws Error if counting fails. */
  count(): Promise<number | undefined>;
  /** Returns the number of effects that answers show; undefined if answers of different operations are alike. */
  infer(answers: readonly Answer[]): number | undefined;
}

/** Returns how the endpoint's effects are counted. @param areDistinct whether two operations got different bodies. */
export function effectsOf(endpoint: Endpoint, areDistinct: boolean): Effects {
  const counter = counterOf(endpoint);
  const inferred = areDistinct
    ? "inferred from different bodies of successful answers"
    : "unknown: name a way to count them";
  return {
    how: counter?.how ?? inferred,
    count: async () => await counter?.count(),
    infer: (answers) =>
      areDistinct
        ? new Set(answers.filter(isSuccess).map(({ body }) => body.toString("latin1"))).size
        : undefined,
  };
}

function counterOf({ countCommand, countSql, countUrl }: Endpoint) {
  if (countCommand !== undefined)
    return { how: "counted by the command", count: async () => await countByCommand(countCommand) };
  if (countSql !== undefined) {
    const psql = ["psql", "--no-psqlrc", "--tuples-only", "--no-align", `--command=${countSql}`];
    return { how: "counted by the query", count: async () => await countByCommand(psql) };
  }
  if (countUrl !== undefined)
    return { how: "counted by the URL", count: async () => await countByUrl(countUrl) };
  return undefined;
}

async function countByCommand([program = "", ...args]: readonly string[]): Promise<number> {
  const { stdout } = await run(program, args, { timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES });
  return toCount(stdout, program);
}

async function countByUrl(url: string): Promise<number> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`${url} answers ${response.status}, and not the number of effects`);
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > MAX_BYTES) throw new Error(`${url} answers more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return toCount(Buffer.concat(chunks).toString(), url);
}

function toCount(text: string, source: string): number {
  if (/^\s*\d{1,15}\s*$/.test(text)) return Number(text);
  const parsed = text.trimStart().startsWith("[") ? JSON.parse(text) : undefined;
  if (Array.isArray(parsed)) return parsed.length;
  throw new Error(`${source} gives neither a whole number nor a JSON array`);
}
