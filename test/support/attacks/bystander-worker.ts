/**
 * A process that claims one key after the other, over gRPC and over JSON by turns, from another address than the floods'. Sends
 * its parent the number of answers after each one, and at the message "end" what it measured.
 */

import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { ClaimRequestSchema } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { callRaw, framed, grpcHeaders, pathOf } from "../network/raw-grpc.ts";

/** Where a bystander calls, and as whom. */
export interface BystanderTask {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly apiKey: string;
  readonly localAddress: string;
}

/** What a bystander saw. */
export interface BystanderReport {
  readonly answers: number;
  /** Answers other than a granted claim, each kind once. */
  readonly failures: readonly string[];
  /** Milliseconds until the answer: median, 99th percentile and maximum. */
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Between two calls, so that the bystander adds no load. */
const PAUSE_MS = 10;

const { grpcPort, httpPort, apiKey, localAddress }: BystanderTask = JSON.parse(process.argv[2] ?? "");
const session = http2.connect(`http://127.0.0.1:${grpcPort}`, {
  createConnection: () => connect({ host: "127.0.0.1", port: grpcPort, localAddress }),
});
const agent = new http.Agent({ keepAlive: true, maxSockets: 1, localAddress });

async function claimByGrpc(key: string): Promise<string> {
  const message = framed(ClaimRequestSchema, { namespace: "bystander", key });
  return (await callRaw(session, grpcHeaders("Claim", apiKey), message)).code;
}

async function claimByJson(key: string): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const target = { port: httpPort, path: pathOf("Claim"), method: "POST", agent, headers };
  const request = http.request(target).end(JSON.stringify({ namespace: "bystander", key }));
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  response.resume();
  await once(response, "end");
  return response.statusCode === 200 ? "OK" : `HTTP ${response.statusCode}`;
}

const took: number[] = [];
const failures = new Set<string>();
let isEnded = false;
process.once("message", () => {
  isEnded = true;
});

// The test has ended early.
process.once("disconnect", () => process.exit());

while (!isEnded) {
  const startedAtMs = performance.now();
  const claim = took.length % 2 === 0 ? claimByGrpc : claimByJson;
  const code = await claim(`key-${took.length}`).catch(String);
  took.push(performance.now() - startedAtMs);
  if (code !== "OK") failures.add(code);
  process.send?.(took.length);
  await pause(PAUSE_MS);
}
took.sort((a, b) => a - b);
const at = (share: number) => took[Math.floor(share * (took.length - 1))] ?? 0;
const report: BystanderReport = {
  answers: took.length,
  failures: [...failures],
  medianMs: at(0.5),
  p99Ms: at(0.99),
  maxMs: at(1),
};
process.send?.(report, () => process.exit());
