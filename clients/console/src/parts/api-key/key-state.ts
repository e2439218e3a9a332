import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { DAY_MS } from "../../format/duration.ts";
import type { Mark } from "../state-mark.tsx";

/** What a key can be. */
export type KeyState = "active" | "expiring" | "expired" | "revoked";

/** Long enough for a rotation that is begun when it is seen. */
const EXPIRING_MS = 14 * DAY_MS;

/** Returns what a key is at a time. */
export function keyState({ revokedAt, expiresAt }: ApiKey, now: Date): KeyState {
  if (revokedAt !== undefined) return "revoked";
  if (expiresAt === undefined) return "active";
  const leftMs = timestampDate(expiresAt).getTime() - now.getTime();
  if (leftMs <= 0) return "expired";
  return leftMs <= EXPIRING_MS ? "expiring" : "active";
}

/** How a state is shown. */
export const KEY_STATE_MARKS: Readonly<Record<KeyState, Mark>> = {
  active: { tone: "good", word: "Active" },
  expiring: { tone: "attention", word: "Expires soon" },
  expired: { tone: "quiet", word: "Expired" },
  revoked: { tone: "quiet", word: "Revoked" },
};

/** Returns the namespaces of a text, separated by spaces, commas or lines; each once. */
export function parseNamespaces(text: string): readonly string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ""))];
}
