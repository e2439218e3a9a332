import { type IncomingHttpHeaders, type RequestOptions, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { gzipSync } from "node:zlib";
import type { Budget } from "./budget.ts";
import { BoundReached } from "./budget.ts";
import type { ProbeRequest } from "./endpoint.ts";

/** A larger response does not count as an answer. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** An answer as received. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A request got no answer, or a broken one. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

/** When the client ends a connection. */
export type Cut = "within the request" | "after the request" | "within the answer" | "with a cancellation";

/** The environment variables that headers may name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Sends a request on a new connection. @throws NoAnswerError, BoundReached */
export async function exchange(request: ProbeRequest, budget: Budget, env: Environment): Promise<Answer> {
  const answer = await start(request, budget, env, undefined);
  if (answer === undefined) throw new NoAnswerError("the connection ended");
  return answer;
}

/** Sends a request and ends the connection. Resolves when it is ended, whether or not an answer came first. */
export async function exchangeAndCut(
  request: ProbeRequest,
  cut: Cut,
  budget: Budget,
  env: Environment,
): Promise<void> {
  await start(request, budget, env, cut).catch((error) => {
    if (!(error instanceof NoAnswerError)) throw error;
  });
}

/** Returns a header's value with the named environment variables. */
export function expand(value: string, env: Environment): string {
  return value.replace(/\$\{(\w+)\}/g, (_, name: string) => env[name] ?? "");
}

/** Resolves without an answer if the connection was cut on purpose. */
function start(
  { url, method, headers, body, encoding }: ProbeRequest,
  budget: Budget,
  env: Environment,
  cut: Cut | undefined,
): Promise<Answer | undefined> {
  const bytes = encoding === "gzip" ? gzipSync(body) : Buffer.from(body);
  budget.transfer(bytes.byteLength);
  const options: RequestOptions = {
    method,
    agent: false,
    headers: {
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, wired(value, env)])),
      ...(encoding === "gzip" && { "content-encoding": "gzip" }),
      ...(encoding === "chunked"
        ? { "transfer-encoding": "chunked" }
        : { "content-length": bytes.byteLength }),
    },
    signal: AbortSignal.timeout(budget.bounds.requestMs),
  };
  return new Promise((resolve, reject) => {
    const fail = (error: Error) =>
      reject(error instanceof BoundReached ? error : new NoAnswerError(error.message));
    const outgoing = (url.startsWith("https:") ? requestHttps : requestHttp)(url, options);
    const end = () => {
      outgoing.destroy();
      resolve(undefined);
    };
    outgoing.on("error", fail);
    outgoing.on("response", (incoming) => {
      if (cut === "within the answer") return end();
      const chunks: Buffer[] = [];
      let sizeBytes = 0;
      incoming.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        sizeBytes += chunk.byteLength;
        try {
          budget.transfer(chunk.byteLength);
          if (sizeBytes > MAX_ANSWER_BYTES)
            throw new Error(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
        } catch (error) {
          outgoing.destroy(error as Error);
        }
      });
      incoming.on("error", fail);
      incoming.on("end", () =>
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks) }),
      );
    });
    const half = Math.ceil(bytes.byteLength / 2);
    if (cut === "within the request") outgoing.write(bytes.subarray(0, half), end);
    else {
      if (encoding === "chunked") outgoing.write(bytes.subarray(0, half));
      outgoing.end(encoding === "chunked" ? bytes.subarray(half) : bytes, () => {
        if (cut === "after the request") end();
      });
    }
  });
}

/** Headers travel as Latin-1: the bytes of UTF-8 are sent as they are. */
function wired(value: string | readonly string[], env: Environment): string | string[] {
  const one = (text: string) => Buffer.from(expand(text, env)).toString("latin1");
  return typeof value === "string" ? one(value) : value.map(one);
}
