import type { Role } from "../../domain/tenant.ts";
import type { Pool } from "../pool.ts";
import { textArray } from "../sql-arrays.ts";

/** What is stored of an API key: everything but the secret. */
interface StoredApiKey {
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

/** An API key as the database knew it at one moment. Instants are in `performance.now()` milliseconds. */
export interface KnownApiKey extends StoredApiKey {
  /** Just before the database was asked. */
  readonly askedAtMs: number;
  /**
   * Never later than the moment at which the database's clock says that the key expires, and earlier by the time that the
   * answer took, at most. Infinite: it doesn't expire.
   */
  readonly endsAtMs: number;
}

const readApiKeys = {
  name: "read_api_keys",
  text: `
select id, tenant_id, (select t.uid from tenants t where t.id = tenant_id) as tenant_uid, role, digest, namespaces,
       (date_part('epoch', expires_at) - date_part('epoch', now())) * 1000 as ends_in_ms
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
  readonly ends_in_ms: number | null;
}

/** Reads keys that are good now; one that is unknown, revoked or expired is missing from the map. */
export async function findApiKeys(
  pool: Pool,
  ids: readonly string[],
): Promise<ReadonlyMap<string, KnownApiKey>> {
  const askedAtMs = performance.now();
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
        askedAtMs,
        endsAtMs: row.ends_in_ms === null ? Number.POSITIVE_INFINITY : askedAtMs + row.ends_in_ms,
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
