import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ClaimRequest } from "../gen/onceward/v1/idempotency_pb.ts";
import { keyTime } from "../keys/key-time.ts";
import type { TestingPolicy } from "./policy.ts";
import { refusal } from "./refusal.ts";
import type { Violations } from "./violations.ts";

/** When a key was made, and until when it is accepted without a record. In milliseconds since 1970. */
export interface KeyAge {
  readonly keyCreatedAtMs: number;
  readonly acceptedUntilMs: number;
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
      violations.add("key_created_at", "is required by the namespace's policy, as the key contains no time");
    }
    return undefined;
  }
  if (keyCreatedAtMs > nowMs + MAX_AHEAD_MS) {
    const field = keyCreatedAt === undefined ? "key" : "key_created_at";
    violations.add(field, `must not be created more than ${MAX_AHEAD_MS / 1000} s after the server's time`);
  }
  return { keyCreatedAtMs, acceptedUntilMs: keyCreatedAtMs + keyRetentionS * 1000 };
}

/** Refuses a key that has no record and is too old. @throws OncewardError KEY_TOO_OLD. */
export function checkAge({ keyCreatedAtMs, acceptedUntilMs }: KeyAge, nowMs: number): void {
  if (nowMs < acceptedUntilMs) return;
  throw refusal(
    "KEY_TOO_OLD",
    "The key is older than its retention and has no record: its operation may have happened and been forgotten. " +
      "Find out whether it happened; if it did not, repeat it under a new key.",
    {
      metadata: {
        key_created_at: new Date(keyCreatedAtMs).toISOString(),
        accepted_until: new Date(acceptedUntilMs).toISOString(),
      },
    },
  );
}
