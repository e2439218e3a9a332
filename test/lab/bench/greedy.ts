import { randomUUID } from "node:crypto";
import { createOnceward } from "@onceward/client";
import { runSlice } from "./load.ts";
import { FINGERPRINT, freshKeys } from "./target.ts";

/**
 * Claims as fast as it can, as one tenant, in its own process, so that only the server is shared with the
 * other tenant: `greedy.ts ADDRESS API_KEY CALLERS`, until its standard input ends.
 */
const [, , address = "", apiKey = "", callers = "1"] = process.argv;
const LONGEST_MS = 10 * 60_000;

const stop = new AbortController();
process.stdin.resume().on("end", () => stop.abort());
// The bench handles Ctrl-C, and then ends this process's input.
process.on("SIGINT", () => {});

await using client = createOnceward({ address, apiKey });
const nextKey = freshKeys();
const claim = () =>
  client.calls.claim({
    namespace: "greedy",
    key: nextKey(),
    claimId: randomUUID(),
    fingerprint: FINGERPRINT,
  });
const load = { callers: Number(callers), durationMs: LONGEST_MS };
await runSlice(claim, load, stop.signal).catch((error: unknown) => {
  if (!stop.signal.aborted) throw error;
});
