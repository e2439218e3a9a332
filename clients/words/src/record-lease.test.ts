import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Record_State, RecordSchema } from "@onceward/client/proto";
import { expect, it } from "vitest";
import { describeLease, endsSoon } from "./record-lease.ts";

it("a record ends soon in the last fifth of its retention, and an ambiguous one says so", () => {
  const [claimedAt, expiresAt] = [timestampFromMs(0), timestampFromMs(100_000)];
  const record = create(RecordSchema, { state: Record_State.AMBIGUOUS, claimedAt, expiresAt });
  expect([79_999, 80_001, 100_001].map((ms) => endsSoon(record, new Date(ms)))).toEqual([false, true, true]);
  expect(endsSoon(create(RecordSchema, { claimedAt }), new Date())).toBe(false);
  const wordsAt = (ms: number) => describeLease(record, new Date(ms));
  expect(wordsAt(80_001).length).toBeGreaterThan(wordsAt(79_999).length);
});
