import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { recordIn } from "../../../../test/support/calls/domain.ts";
import { ClaimResponseSchema } from "../../gen/onceward/v1/idempotency_pb.ts";
import type { ClaimOutcome } from "../record.ts";
import { claimResponse, timeInKey } from "./messages.ts";

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

test.each([
  // The examples of RFC 9562, appendix A, whose time is 2022-02-22T19:22:22Z.
  ["a UUID of version 1", "C232AB00-9414-11EC-B3C8-9F6BDECED846"],
  ["a UUID of version 6", "1EC9414C-232A-6B00-B3C8-9F6BDECED846"],
  ["a UUID of version 7", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"],
  ["one in lower case", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"],
])("%s says when it was created", (_, key) => {
  expect(timeInKey(key)).toBe(Date.parse("2022-02-22T19:22:22Z"));
});

test.each(["01ARYZ6S41TSV4RRFFQ69G5FAV", "01aryz6s41tsv4rrffq69g5fav"])("a ULID says it: %s", (key) => {
  // The example of the specification of ULIDs.
  expect(timeInKey(key)).toBe(1_469_918_176_385);
});

test("the last moment of a ULID is read exactly", () => {
  expect(timeInKey("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")).toBe(2 ** 48 - 1);
});

test.each([
  ["a random UUID", "919108f7-52d1-4320-9bac-f847db4148a8"],
  ["a UUID made of a name", "5df41881-3aed-3515-88a7-2f4a814cf09e"],
  ["a UUID of another variant", "017f22e2-79b0-7cc3-c8c4-dc0c0c07398f"],
  ["a UUID without hyphens", "017f22e279b07cc398c4dc0c0c07398f"],
  ["a UUID after other text", "order-017f22e2-79b0-7cc3-98c4-dc0c0c07398f"],
  ["a UUID before other text", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f/2"],
  ["26 characters of which one is not a digit of a ULID", "01ARYZ6S41TSV4RRFFQ69G5FAU"],
  ["26 characters that are more than 128 bits", "81ARYZ6S41TSV4RRFFQ69G5FAV"],
  ["a line break behind a ULID's place", "01ARYZ6S41TSV4RRFFQ69G5FA\n"],
  ["other text", "order-1"],
  ["nothing", ""],
])("%s says nothing", (_, key) => {
  expect(timeInKey(key)).toBeUndefined();
});
