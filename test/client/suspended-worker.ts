/**
 * A process that does one task with its client and suspends itself (SIGSTOP) when the n-th answer of the service has
 * arrived, before its client sees it. Prints "suspended" then, and a line for each effect.
 */

import { writeSync } from "node:fs";
import type { Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createOnceward } from "@onceward/client";
import { createAgentRun } from "../../clients/typescript/src/agents.ts";

/** What a worker does, and when. */
export interface SuspendedTask {
  readonly task: "run" | "checkpoint" | "tool";
  readonly address: string;
  readonly apiKey: string;
  readonly leaseMs: number;
  /** The number of the answer, from 1. */
  readonly suspendAt: number;
}

const { task, address, apiKey, leaseMs, suspendAt }: SuspendedTask = JSON.parse(process.argv[2] ?? "");
let answers = 0;

const suspend: Interceptor = (next) => async (request) => {
  request.header.set("authorization", `Bearer ${apiKey}`);
  const response = await next(request);
  if (++answers === suspendAt) {
    const sinceMs = performance.now();
    writeSync(1, "suspended\n");
    process.kill(process.pid, "SIGSTOP");
    // The signal is asynchronous: nothing more may be done before it arrives.
    while (performance.now() < sinceMs + leaseMs);
  }
  return response;
};
const onceward = createOnceward({
  transport: createGrpcTransport({ baseUrl: address, interceptors: [suspend] }),
});
const effect = () => void writeSync(1, "effect\n");

const tasks = {
  run: () => onceward.run({ namespace: "charges", key: "order-1", leaseMs }, effect),
  checkpoint: () =>
    onceward.run({ namespace: "charges", key: "order-1", leaseMs }, async (claim) => {
      await claim.saveCheckpoint("charging");
      effect();
    }),
  tool: () =>
    createAgentRun(onceward, { namespace: "charges", runId: "run-1", leaseMs, onCrash: "hold" }).call(
      { tool: "charge", step: "1", input: {} },
      effect,
    ),
};
await tasks[task]().catch((error: Error) => writeSync(1, `${error.name}\n`));
await onceward.close();
