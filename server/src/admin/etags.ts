import { createHash } from "node:crypto";
import { Refusal } from "../domain/refusal.ts";
import type { NamespaceResource, TenantResource } from "../domain/tenant-resource.ts";

/** Names a state of a tenant. Holds its id, so that no two tenants ever share one. */
export function tenantEtag({ id, version }: TenantResource): string {
  return digest(["tenant", id, version]);
}

/** Names a state of a namespace. */
export function namespaceEtag({ tenantId, name, version }: NamespaceResource): string {
  return digest(["namespace", tenantId, name, version]);
}

function digest(parts: readonly (string | number)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 22);
}

/**
 * @param sent empty: the caller does not mind what it changes.
 * @throws Refusal ETAG_MISMATCH, the same for one that is old, another's or made up.
 */
export function checkEtag(sent: string, current: string | undefined): void {
  if (sent === "" || sent === current) return;
  throw new Refusal("ETAG_MISMATCH", "The etag is not that of the resource as it stands; read it again.");
}
