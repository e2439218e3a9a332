import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { HOUR_MS } from "../../format/duration.ts";
import { keyState } from "../../parts/api-key/key-state.ts";

/** How far a rotation is. */
export type RotationStep =
  /** No successor exists. */
  | { readonly kind: "create" }
  /** The successor was never used. */
  | { readonly kind: "switch" }
  /** The old key may still be used: its last hour of use ended `quietMs` ago, which is too short. */
  | { readonly kind: "wait"; readonly quietMs: number }
  /** The old key was not used for `quietMs`; undefined: never. */
  | { readonly kind: "revoke"; readonly quietMs: number | undefined }
  | { readonly kind: "done" };

/**
 * Returns how far the rotation of a key is. The last use is known to the hour, and stored some seconds late: an hour without use
 * begins when the hour of the last use has ended.
 */
export function rotationStep(old: ApiKey, successor: ApiKey | undefined, now: Date): RotationStep {
  if (old.revokedAt !== undefined) return { kind: "done" };
  if (successor === undefined) return { kind: "create" };
  if (successor.lastUsedAt === undefined) return { kind: "switch" };
  if (old.lastUsedAt === undefined) return { kind: "revoke", quietMs: undefined };
  const hourEndsMs = msOf(old.lastUsedAt) + HOUR_MS;
  const quietMs = Math.max(0, now.getTime() - hourEndsMs);
  return quietMs < HOUR_MS ? { kind: "wait", quietMs } : { kind: "revoke", quietMs };
}

/** Returns the keys that can be the successor of one: newer, of the same scope and label, and neither revoked nor expired. */
export function findSuccessors(old: ApiKey, keys: readonly ApiKey[], now: Date): readonly ApiKey[] {
  return keys.filter(
    (key) =>
      key.id !== old.id &&
      msOf(key.createdAt) > msOf(old.createdAt) &&
      key.role === old.role &&
      key.label === old.label &&
      scopeOf(key) === scopeOf(old) &&
      ["active", "expiring"].includes(keyState(key, now)),
  );
}

function scopeOf({ namespaces }: ApiKey): string {
  return [...namespaces].sort().join(" ");
}

function msOf(at: Timestamp | undefined): number {
  return at === undefined ? 0 : timestampDate(at).getTime();
}
