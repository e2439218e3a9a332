import { createInterface } from "node:readline";
import { createOnceward, OncewardError } from "../../../clients/typescript/src/index.ts";
import { charge, RESOLVE } from "../../support/providers/charge.ts";
import type { Delivery, Moment, Outcome, Setup } from "./worker.ts";

// A worker of the TypeScript client, which is ended at any moment. Reads its setup, prints "ready", reads deliveries as lines of
// JSON, charges at a provider, and prints outcomes.
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const setup = JSON.parse((await lines.next()).value ?? "") as Setup;
const onceward = createOnceward({ address: setup.address, apiKey: setup.apiKey });
const caller = new AbortController();
process.on("SIGTERM", () => {
  if (setup.interruption === "cancel") caller.abort();
  else void onceward.close({ timeoutMs: 0 });
});
process.stdout.write("ready\n");
for (let line = await lines.next(); line.done !== true; line = await lines.next())
  void deliver(JSON.parse(line.value) as Delivery);

async function deliver({ id, namespace, key, provider, dieAt }: Delivery): Promise<void> {
  const reach = (moment: Moment) => {
    if (dieAt === moment) process.kill(process.pid, "SIGKILL");
  };
  let looked = false;
  const resolve = provider.kind === "no-key" ? undefined : RESOLVE[provider.kind](provider);
  reach("before the claim");
  const outcome = await onceward
    .run(
      {
        ...{ namespace, key, leaseMs: setup.leaseMs, waitMs: 0, signal: caller.signal },
        ...{ onError: resolve && "unknown", marksBegin: setup.marksBegin },
        resolve:
          resolve &&
          (async (claim) => {
            looked = true;
            reach("while it looks");
            return await resolve(claim);
          }),
      },
      async (claim) => {
        reach("before it begins");
        await claim.begin();
        reach("before the call");
        const limit = AbortSignal.timeout(setup.timeLimitMs);
        const value = await charge(provider, claim, AbortSignal.any([claim.signal, limit]));
        reach("before the completion");
        return value;
      },
    )
    .then<Outcome, Outcome>(
      (value) => ({ id, looked, value }),
      (error) => ({ id, looked, reason: error instanceof OncewardError ? error.reason : "INTERRUPTED" }),
    );
  reach("after the completion");
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}
