import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ClaimRequest } from "../gen/onceward/v1/idempotency_pb.ts";
import { keyTime } from "../keys/key-time.ts";
import type { TestingPolicy } from "./policy.ts";
import { refusal } from "./refusal.ts";
import type { Violations } from "./violations.ts";

/** When a key was made, and how old a key without a record may be. */
export interface KeyAge {
  readonly keyCreatedAtMs: number;
  readonly acceptedForMs: number;
}

/** How far the clock that stamped a key may be ahead. */
const MAX_AHEAD_MS = 300_000;

/** Reads the age of a claim's key; undefined if the policy accepts any, or the time is unknown and need not be known. */
export function parseKeyAge(
  { key, keyCreatedAt }: ClaimRequest,
  { lateKeys, keyRetentionS }: TestingPolicy,
  nowMs: number,
  violations: Violations,
): KeyAge | undefined {
  if (lateKeys === "RUN") return undefined;
  const keyCreatedAtMs = keyCreatedAt === undefined ? keyTime(key)?.getTime() : timestampMs(keyCreatedAt);
  if (keyCreatedAtMs === undefined) {
    if (lateKeys === "REQUIRE_TIME") {
      violations.add("key_created_at", "is required by the namespace's policy, and the key contains no time");
    }
    return undefined;
  }
  if (keyCreatedAtMs > nowMs + MAX_AHEAD_MS) {
    violations.add("key_created_at", "must be at most 5 min ahead of the database's clock");
  }
  return { keyCreatedAtMs, acceptedForMs: keyRetentionS * 1000 };
}

/** Refuses a key that has no record and is too old. @throws OncewardError KEY_TOO_OLD. */
export function checkAge({ keyCreatedAtMs, acceptedForMs }: KeyAge, nowMs: number): void {
  const acceptedUntilMs = keyCreatedAtMs + acceptedForMs;
  if (nowMs <= acceptedUntilMs) return;
  const keyCreatedAt = new Date(keyCreatedAtMs).toISOString();
  const acceptedUntil = new Date(acceptedUntilMs).toISOString();
  throw refusal(
    "KEY_TOO_OLD",
    `The key was created at ${keyCreatedAt}, was accepted until ${acceptedUntil}, and has no record: its operation may have ` +
      "happened and been forgotten. Find out whether it did; if not, repeat it under a new key.",
    { metadata: { key_created_at: keyCreatedAt, accepted_until: acceptedUntil } },
  );
}
