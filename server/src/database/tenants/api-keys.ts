import type { ApiKeyResource, Role } from "../../domain/tenant.ts";
import type { Runner } from "../pool.ts";
import { fromRow, type RowOf } from "../rows.ts";
import { textArray } from "../sql-arrays.ts";

// API keys as authentication needs them.

/**
 * An API key as it was in the database at one moment: everything but the secret. Instants are in `performance.now()`
 * milliseconds.
 */
export interface KnownApiKey {
  readonly id: string;
  /** Undefined: an operator's. */
  readonly tenantId: number | undefined;
  /** The `uid` of that tenant. */
  readonly tenantUid: string | undefined;
  readonly role: Role;
  /** HMAC-SHA256 of the secret under the deployment's pepper. */
  readonly digest: Buffer;
  /** Tells which pepper that is (access/pepper.ts); undefined: it is not known. */
  readonly pepperMark: Buffer | undefined;
  /** The only namespaces that the key is valid for; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  /** Just before the database was asked. */
  readonly askedAtMs: number;
  /**
   * When the key expires. Never later than by the database's clock, and earlier by at most the duration of the query.
   * Infinite: it doesn't expire.
   */
  readonly endsAtMs: number;
  /** When the key expires, in milliseconds since the Unix epoch; undefined: it doesn't. */
  readonly expiresAtMs: number | undefined;
}

const readApiKeys = {
  name: "read_api_keys",
  text: `
select id, tenant_id as "tenantId", (select t.uid from tenants t where t.id = tenant_id) as "tenantUid", role, digest,
       pepper_mark as "pepperMark", namespaces, extract(epoch from expires_at) * 1000 as "expiresAtMs",
       (extract(epoch from expires_at) - extract(epoch from now())) * 1000 as "endsInMs"
  from api_keys
 where id = any ($1::text[])
   and revoked_at is null
   and (expires_at is null or expires_at > now())`,
};

type StoredRow = RowOf<Omit<KnownApiKey, "askedAtMs" | "endsAtMs">> & { readonly endsInMs: number | null };

/** Returns the keys that are valid now; one that is unknown, revoked or expired is missing from the map. */
export async function findApiKeys(
  runner: Runner,
  ids: readonly string[],
): Promise<ReadonlyMap<string, KnownApiKey>> {
  const askedAtMs = performance.now();
  const rows = await runner.run<StoredRow>(readApiKeys, [textArray(ids)]);
  return new Map(
    rows.map(({ endsInMs, ...row }) => [
      row.id,
      {
        ...fromRow<Omit<KnownApiKey, "askedAtMs" | "endsAtMs">>(row),
        askedAtMs,
        endsAtMs: endsInMs === null ? Number.POSITIVE_INFINITY : askedAtMs + endsInMs,
      },
    ]),
  );
}

const readKeyLabels = {
  name: "read_key_labels",
  text: "select id, label from api_keys where id = any ($2::text[]) and tenant_id = $1::int",
};

/** Returns the labels of those of a tenant's API keys that have these ids, revoked ones too. */
export async function findKeyLabels(
  runner: Runner,
  tenantId: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await runner.run<{ id: string; label: string }>(readKeyLabels, [tenantId, textArray(ids)]);
  return new Map(rows.map(({ id, label }) => [id, label]));
}

const storeDigestRow = {
  name: "store_key_digest",
  text: `
update api_keys set digest = $3::bytea, pepper_mark = $4::bytea
 where id = $1::text and digest = $2::bytea`,
};

/** Stores a key's digest under another pepper, unless the digest is no longer `replaced`. */
export async function storeKeyDigest(
  runner: Runner,
  id: string,
  replaced: Uint8Array,
  { digest, pepperMark }: { readonly digest: Uint8Array; readonly pepperMark: Uint8Array },
): Promise<void> {
  await runner.run(storeDigestRow, [id, replaced, digest, pepperMark]);
}

// API keys as administrators and operators see them.

const COLUMNS = `
  id, role, label, namespaces, extract(epoch from created_at) * 1000 as "createdAtMs",
  extract(epoch from expires_at) * 1000 as "expiresAtMs", extract(epoch from revoked_at) * 1000 as "revokedAtMs",
  extract(epoch from last_used_at) * 1000 as "lastUsedAtMs"`;

const insertApiKeyRow = {
  name: "insert_api_key",
  text: `
insert into api_keys (id, tenant_id, role, label, namespaces, expires_at, digest, pepper_mark)
select $1::text, $2::int, $3::text, $4::text, $5::text[], expires_at, $7::bytea, $8::bytea
  from (select to_timestamp($6::float8 / 1000) as expires_at) e
 where coalesce(expires_at > now(), true)
returning ${COLUMNS}`,
};

/**
 * Stores a new key of a tenant that the transaction has locked, or an operator's. Returns undefined if the key has expired
 * already, by the database's clock.
 */
export async function insertApiKey(
  transaction: Runner,
  tenantId: number | undefined,
  key: Pick<ApiKeyResource, "id" | "role" | "label" | "namespaces" | "expiresAtMs">,
  { digest, pepperMark }: { readonly digest: Uint8Array; readonly pepperMark: Uint8Array },
): Promise<ApiKeyResource | undefined> {
  const [row] = await transaction.run<RowOf<ApiKeyResource>>(insertApiKeyRow, [
    key.id,
    tenantId ?? null,
    key.role,
    key.label,
    key.namespaces ? textArray(key.namespaces) : null,
    key.expiresAtMs ?? null,
    digest,
    pepperMark,
  ]);
  return row && fromRow<ApiKeyResource>(row);
}

/** A position in the list of keys: when the key was created, to the microsecond, and its id. */
export type ApiKeyCursor = readonly [createdAt: string, id: string];

/** Conditions for the keys of a tenant and of operators: each is a range of an index. */
const OF_TENANT = "tenant_id = $1::int";
const OF_OPERATORS = "tenant_id is null and $1::int is null";

function listStatement(name: string, ofOwner: string) {
  return {
    name,
    text: `
select ${COLUMNS}, to_jsonb(created_at) #>> '{}' as "createdAt"
  from api_keys k
 where ${ofOwner}
   and (k.created_at, k.id) < ($2::timestamptz, $3::text)
 order by k.created_at desc, k.id desc
 limit $4::int`,
  };
}

const listTenantsKeys = listStatement("list_api_keys", OF_TENANT);
const listOperatorsKeys = listStatement("list_operator_api_keys", OF_OPERATORS);

const BEFORE_ALL: ApiKeyCursor = ["infinity", ""];

/**
 * Returns at most `limit` keys of a tenant, or of operators, newest first, after a cursor, each with its own. Revoked and
 * expired keys are included.
 */
export async function listApiKeys(
  runner: Runner,
  tenantId: number | undefined,
  after: ApiKeyCursor = BEFORE_ALL,
  limit: number,
): Promise<readonly (ApiKeyResource & { readonly cursor: ApiKeyCursor })[]> {
  const statement = tenantId === undefined ? listOperatorsKeys : listTenantsKeys;
  const rows = await runner.run<RowOf<ApiKeyResource> & { readonly createdAt: string }>(statement, [
    ...[tenantId ?? null, ...after, limit],
  ]);
  return rows.map(({ createdAt, ...row }) => ({
    ...fromRow<ApiKeyResource>(row),
    cursor: [createdAt, row.id],
  }));
}

function lockStatement(name: string, ofOwner: string) {
  return { name, text: `select ${COLUMNS} from api_keys where ${ofOwner} and id = $2::text for update` };
}

const lockTenantsKey = lockStatement("lock_api_key", OF_TENANT);
const lockOperatorsKey = lockStatement("lock_operator_api_key", OF_OPERATORS);

/** Returns a key of a tenant, or an operator's, and locks it until the transaction ends; undefined if there is none. */
export async function lockApiKey(
  transaction: Runner,
  tenantId: number | undefined,
  id: string,
): Promise<ApiKeyResource | undefined> {
  const statement = tenantId === undefined ? lockOperatorsKey : lockTenantsKey;
  const [row] = await transaction.run<RowOf<ApiKeyResource>>(statement, [tenantId ?? null, id]);
  return row && fromRow<ApiKeyResource>(row);
}

const revokeApiKeyRow = {
  name: "revoke_api_key",
  text: `update api_keys set revoked_at = now() where id = $1::text returning ${COLUMNS}`,
};

/** Revokes a key that the transaction has locked: it is refused on every replica within 10 s. */
export async function revokeApiKey(transaction: Runner, id: string): Promise<ApiKeyResource> {
  const [row] = await transaction.run<RowOf<ApiKeyResource>>(revokeApiKeyRow, [id]);
  if (row === undefined) throw new Error("a locked API key is missing");
  return fromRow<ApiKeyResource>(row);
}

const revokeApiKeyRows = {
  name: "revoke_api_keys",
  text: "update api_keys set revoked_at = now() where tenant_id = $1::int and revoked_at is null",
};

/** Revokes all keys of a tenant. */
export async function revokeApiKeys(transaction: Runner, tenantId: number): Promise<void> {
  await transaction.run(revokeApiKeyRows, [tenantId]);
}

const storeKeyUse = {
  name: "store_key_use",
  text: `
update api_keys
   set last_used_at = date_trunc('hour', now(), 'UTC')
 where ctid = any (array (
       select ctid
         from api_keys used
        where used.id = any ($1::text[])
          and (used.last_used_at is null or used.last_used_at < date_trunc('hour', now(), 'UTC'))
        order by used.id
          for update skip locked))`,
};

/**
 * Stores that keys were used in the current hour. A key that another statement has locked is skipped: its next use is
 * stored.
 */
export async function storeApiKeyUse(runner: Runner, ids: readonly string[]): Promise<void> {
  await runner.run(storeKeyUse, [textArray(ids)]);
}
