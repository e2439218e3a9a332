import { createInterface } from "node:readline";
import { createOnceward, OncewardError } from "../../../clients/typescript/src/index.ts";
import type { Delivery, Outcome } from "./worker.ts";

// Makes one delivery of an operation by the TypeScript client, and is ended at any moment. Prints "ready", reads the delivery as a line
// of JSON, has an effect by HTTP, and prints the outcome.
process.stdout.write("ready\n");
const { value: line } = await createInterface({ input: process.stdin })[Symbol.asyncIterator]().next();
const given = JSON.parse(line ?? "") as Delivery;
const { namespace, key, effectUrl, leaseMs, acceptAmbiguous, interruption, timeLimitMs } = given;
const onceward = createOnceward({ address: given.address, apiKey: given.apiKey });
const caller = new AbortController();
process.on("SIGTERM", () => {
  if (interruption === "cancel") caller.abort();
  else void onceward.close({ timeoutMs: 0 });
});
const operation = { namespace, key, leaseMs, acceptAmbiguous, signal: caller.signal };
const outcome = await onceward
  .runDetailed(operation, async (claim) => {
    const { attempt } = claim;
    const limit = AbortSignal.timeout(timeLimitMs);
    const response = await fetch(effectUrl, {
      method: "POST",
      body: JSON.stringify({
        key,
        derivedKey: claim.deriveKey("bank"),
        attempt,
        fencingToken: Number(claim.fencingToken),
      }),
      signal: AbortSignal.any([claim.signal, limit]),
    });
    return (await response.json()) as number;
  })
  .then<Outcome, Outcome>(
    ({ value, replayed }) => ({ value, replayed }),
    (error) => ({
      value: 0,
      replayed: false,
      reason: error instanceof OncewardError ? error.reason : "INTERRUPTED",
    }),
  );
process.stdout.write(`${JSON.stringify(outcome)}\n`);
process.exit();
