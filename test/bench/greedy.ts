import { randomUUID } from "node:crypto";
import { createOnceward } from "@onceward/client";
import { runSlice } from "./load.ts";
import { FINGERPRINT, freshKeys } from "./target.ts";

/**
 * A tenant that claims as fast as it can, in a process of its own, so that only the server is shared with whom it
 * crowds: `greedy.ts ADDRESS API_KEY CALLERS`, until its standard input ends.
 */
const [, , address = "", apiKey = "", callers = "1"] = process.argv;
const LONGEST_MS = 10 * 60_000;

const stop = new AbortController();
process.stdin.resume().on("end", () => stop.abort());
// Ctrl-C is for the bench, which then ends our input.
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
