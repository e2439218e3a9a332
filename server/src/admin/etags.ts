import { createHash } from "node:crypto";
import { Refusal } from "../domain/refusal.ts";

/** Returns the etag of a resource's state. `parts`: its kind, its id and its version. */
export function etagOf(parts: readonly (string | number)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 22);
}

/**
 * Checks the etag of a request. An empty one matches every state.
 *
 * @throws Refusal ETAG_MISMATCH: the same for an old etag, another resource's and an invented one.
 */
export function checkEtag(sent: string, current: string | undefined): void {
  if (sent === "" || sent === current) return;
  throw new Refusal("ETAG_MISMATCH", "The etag is not the resource's current one; read the resource again.");
}
