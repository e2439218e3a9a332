import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { recordIn } from "../../../../test/helpers/calls/domain.ts";
import { ClaimResponseSchema } from "../../gen/onceward/v1/idempotency_pb.ts";
import type { ClaimOutcome } from "../record.ts";
import { claimResponse } from "./messages.ts";

/** When a claim in progress says to ask again, in milliseconds. */
function retryAfterMs(leaseRemainingMs: number): number {
  const common = {
    owner: "",
    attempt: 1,
    leaseExpiresAtMs: 0,
    firstClaimedAtMs: 0,
    expiresAtMs: 0,
    answeredAtMs: 0,
  };
  const { outcome } = claimResponse({ kind: "inProgress", leaseRemainingMs, ...common }, 0);
  if (outcome.case !== "inProgress") throw new Error(`answered ${outcome.case}`);
  const { seconds = 0n, nanos = 0 } = outcome.value.retryAfter ?? {};
  return Number(seconds) * 1000 + nanos / 1e6;
}

describe("the reply to a claim", () => {
  test("in progress has a retry delay of the rest of the lease, but at most 1 s", () => {
    expect([30_000, 1000, 400, 1, -5].map(retryAfterMs)).toEqual([1000, 1000, 400, 10, 10]);
  });

  const common = { expiresAtMs: 1, firstClaimedAtMs: 1, answeredAtMs: 1, owner: "", attempt: 0 };
  const granted = { kind: "claimed", repeated: false, fencingToken: 0n, checkpoint: undefined } as const;
  const lease = { leaseExpiresAtMs: 1, leaseRemainingMs: 0 };
  const completed = { kind: "completed", completedAtMs: 1, record: recordIn("completed") } as const;
  const result = { kind: "failure", payload: new Uint8Array(0), contentType: "", metadataJson: "" } as const;
  const checkpoint = { name: "", state: new Uint8Array(0) };

  test.each<[string, ClaimOutcome]>([
    ["granted", { ...common, ...lease, ...granted }],
    ["granted with a checkpoint", { ...common, ...lease, ...granted, checkpoint }],
    ["in progress", { ...common, ...lease, kind: "inProgress" }],
    ["completed", { ...common, ...completed, result }],
    ["completed, its result expired", { ...common, ...completed, result: undefined }],
    ["ambiguous", { ...common, kind: "ambiguous", leaseExpiredAtMs: 1, checkpoint }],
  ])("has every field of its schema, set or not: %s", (_name, outcome) => {
    const reply = claimResponse(outcome, 1);
    expect(fromBinary(ClaimResponseSchema, toBinary(ClaimResponseSchema, reply))).toEqual(reply);
  });

  test("has times to the microsecond", () => {
    const claimed = {
      kind: "claimed",
      repeated: false,
      fencingToken: 1n,
      attempt: 1,
      checkpoint: undefined,
      leaseRemainingMs: 29_999.7,
      leaseExpiresAtMs: 1_800_000_000_123.457,
      firstClaimedAtMs: 1_799_999_999_999.9998,
      expiresAtMs: 1_800_000_000_000,
      answeredAtMs: 1_800_000_000_000.5,
    } as const;
    const { outcome, expiresAt, serverTime } = claimResponse(claimed, 1);
    expect(outcome.value).toMatchObject({
      leaseExpiresAt: { seconds: 1_800_000_000n, nanos: 123_457_000 },
      leaseRemaining: { seconds: 29n, nanos: 999_000_000 },
    });
    expect(expiresAt).toMatchObject({ seconds: 1_800_000_000n, nanos: 0 });
    expect(serverTime).toMatchObject({ seconds: 1_800_000_000n, nanos: 500_000 });
  });
});
