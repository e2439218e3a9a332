import { createHash, createHmac } from "node:crypto";
import type { Call } from "../../../server/src/core/calls/call.ts";
import {
  createFirstClaimsBuffer,
  type FirstClaimsBuffer,
} from "../../../server/src/features/insight/first-claims.ts";
import { createDepthOf } from "../../../server/src/features/insight/key-sampler.ts";
import { createDeclinedKeys } from "../../../server/src/features/key-history/declined-keys.ts";
import { createUsageMeter } from "../../../server/src/features/usage/usage-meter.ts";

/*
 * `node --conditions=@onceward/source test/tools/insight/claim-cost.ts`: prints what counting a granted claim costs on its way, and
 * what hashing a first claim of a sampled namespace costs afterwards, in nanoseconds: the best of several rounds.
 */

const ROUNDS = 25;
const CLAIMS = 40_000;

const ids = Array.from({ length: CLAIMS }, (_, i) => ({
  tenantId: 1,
  namespace: "charges",
  key: `order-${i}-${crypto.randomUUID()}`,
}));
const granted = {
  kind: "claimed",
  repeated: false,
  fencingToken: 1n,
  leaseExpiresAtMs: 0,
  leaseRemainingMs: 0,
  attempt: 1,
  checkpoint: undefined,
  firstClaimedAtMs: 1000,
  expiresAtMs: 0,
  answeredAtMs: undefined,
} as const;
const commands = ids.map((id) => ({
  id,
  fingerprint: createHash("sha256").update(id.key).digest(),
  retentionInForceS: 86_400,
  keyCreatedAtMs: undefined,
}));

/** @param shift of the sample of fingerprints; undefined: keys are not observed. */
function bufferOf(isSampled: boolean, shift?: number): FirstClaimsBuffer {
  return createFirstClaimsBuffer({
    isSampled: () => isSampled,
    onFull() {},
    fingerprintShiftOf: () => shift,
    onObservedFull() {},
  });
}

/** Returns the fastest round's time for each claim, in nanoseconds. */
function measure(round: () => void): number {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let n = 0; n < ROUNDS; n++) {
    const startedAtMs = performance.now();
    round();
    bestMs = Math.min(bestMs, performance.now() - startedAtMs);
  }
  return (bestMs / CLAIMS) * 1e6;
}

function countAll(buffer: FirstClaimsBuffer) {
  const meter = createUsageMeter(() => {});
  return () => {
    for (const command of commands) {
      meter.claimed(command, granted, 1000);
      buffer.claimed(command, granted, 1000);
    }
    buffer.takeFirstClaims();
    buffer.takeObserved();
    buffer.beginInterval();
  };
}

/** Counts a replay of each key; only some of them have room. */
function replayAll(replayed: readonly { readonly namespace: string; readonly key: string }[]) {
  const call = {
    principal: { role: "CALLER", actor: "key-1", tenant: { id: 1 } },
    requestId: "request-1",
  } as unknown as Call;
  return () => {
    const keys = createDeclinedKeys();
    for (const each of replayed) keys.declined(each, "completed", call);
  };
}

const depthOf = createDepthOf(81985529216486895n);
let kept = 0;
const costs = {
  "counting how long a claim took": measure(() => {
    const meter = createUsageMeter(() => {});
    meter.count({ tenantId: 1, namespace: "charges" }, "completions");
    for (let n = 0; n < CLAIMS; n++) meter.took({ tenantId: 1, namespace: "charges" }, 1 + (n % 16));
  }),
  "the history of one key, a replay": measure(
    replayAll(Array<(typeof ids)[number]>(CLAIMS).fill(ids[0] as (typeof ids)[number])),
  ),
  "the history of 1,000 keys, a replay": measure(
    replayAll(ids.map((_, n) => ids[n % 1000] as (typeof ids)[number])),
  ),
  "the history of 40,000 keys, a replay": measure(replayAll(ids)),
  "counting, namespace not sampled": measure(countAll(bufferOf(false))),
  "counting, namespace sampled": measure(countAll(bufferOf(true))),
  "counting, keys observed, one fingerprint in 256 sampled": measure(countAll(bufferOf(false, 8))),
  "counting, keys observed, each fingerprint sampled": measure(countAll(bufferOf(false, 0))),
  "depth of a key, after the reply": measure(() => {
    for (const { key } of ids) kept += depthOf(key);
  }),
  "HMAC of a key, for sampled keys alone": measure(() => {
    for (const { key } of ids) kept += createHmac("sha256", "pepper").update(key).digest().length;
  }),
};
for (const [name, ns] of Object.entries(costs)) console.log(`${name}: ${ns.toFixed(0)} ns`);
// What was computed is used, so that it is not optimised away.
if (kept < 0) throw new Error("impossible");
