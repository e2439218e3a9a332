import type { Role } from "../domain/tenant.ts";
import type { Pool } from "./pool.ts";
import { textArray } from "./sql-arrays.ts";

/** An API key as it is stored: everything but the secret. */
export interface StoredApiKey {
  readonly id: string;
  /** Undefined: an operator's. */
  readonly tenantId: number | undefined;
  /** The `uid` of that tenant. */
  readonly tenantUid: string | undefined;
  readonly role: Role;
  /** HMAC-SHA256 of the secret under the deployment's pepper. */
  readonly digest: Buffer;
  /** The only namespaces it is good for; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
}

const readApiKeys = {
  name: "read_api_keys",
  text: `
select id, tenant_id, (select t.uid from tenants t where t.id = tenant_id) as tenant_uid, role, digest, namespaces
  from api_keys
 where id = any ($1::text[])
   and revoked_at is null
   and (expires_at is null or expires_at > now())`,
};

interface ApiKeyRow {
  readonly id: string;
  readonly tenant_id: number | null;
  readonly tenant_uid: string | null;
  readonly role: Role;
  readonly digest: Buffer;
  readonly namespaces: string[] | null;
}

/** Reads keys that are good now; one that is unknown, revoked or expired is missing from the map. */
export async function findApiKeys(
  pool: Pool,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StoredApiKey>> {
  const rows = await pool.run<ApiKeyRow>(readApiKeys, [textArray(ids)]);
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        tenantId: row.tenant_id ?? undefined,
        tenantUid: row.tenant_uid ?? undefined,
        role: row.role,
        digest: row.digest,
        namespaces: row.namespaces ?? undefined,
      },
    ]),
  );
}

/** A key to be stored. */
export interface NewApiKey extends Omit<StoredApiKey, "tenantUid"> {
  /** What its owner calls it. */
  readonly label: string;
}

const ensureApiKeyRow = {
  name: "ensure_api_key",
  text: `
insert into api_keys (id, tenant_id, role, label, digest, namespaces)
values ($1::text, $2::int, $3::text, $4::text, $5::bytea, $6::text[])
on conflict (id) do update set digest = excluded.digest`,
};

/** Stores a key; one that is there already gets the digest anew, for a pepper that was changed. */
export async function ensureApiKey(pool: Pool, key: NewApiKey): Promise<void> {
  await pool.run(ensureApiKeyRow, [
    key.id,
    key.tenantId ?? null,
    key.role,
    key.label,
    key.digest,
    key.namespaces ? textArray(key.namespaces) : null,
  ]);
}
