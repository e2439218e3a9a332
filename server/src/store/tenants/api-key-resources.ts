import type { ApiKeyResource } from "../../domain/api-key-resource.ts";
import type { Role } from "../../domain/tenant.ts";
import type { Runner } from "../pool.ts";
import { textArray } from "../sql-arrays.ts";

const COLUMNS = `
  id, role, label, namespaces, created_at::text as created_at,
  date_part('epoch', created_at) * 1000 as created_at_ms,
  date_part('epoch', expires_at) * 1000 as expires_at_ms,
  date_part('epoch', revoked_at) * 1000 as revoked_at_ms`;

interface Row {
  readonly id: string;
  readonly role: Role;
  readonly label: string;
  readonly namespaces: string[] | null;
  readonly created_at: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number | null;
  readonly revoked_at_ms: number | null;
}

const insertApiKeyRow = {
  name: "insert_api_key",
  text: `
insert into api_keys (id, tenant_id, role, label, namespaces, expires_at, digest)
select $1::text, $2::int, $3::text, $4::text, $5::text[], expires_at, $7::bytea
  from (select to_timestamp($6::float8 / 1000) as expires_at) e
 where coalesce(expires_at > now(), true)
returning ${COLUMNS}`,
};

/** Stores a key of a tenant that the transaction has locked, or an operator's; undefined if the database's clock says that it has expired. */
export async function insertApiKey(
  transaction: Runner,
  tenantId: number | undefined,
  key: Pick<ApiKeyResource, "id" | "role" | "label" | "namespaces" | "expiresAtMs">,
  digest: Uint8Array,
): Promise<ApiKeyResource | undefined> {
  const [row] = await transaction.run<Row>(insertApiKeyRow, [
    key.id,
    tenantId ?? null,
    key.role,
    key.label,
    key.namespaces ? textArray(key.namespaces) : null,
    key.expiresAtMs ?? null,
    digest,
  ]);
  return row && parse(row);
}

/** A key and where it stands in the list. */
export interface ListedApiKey extends ApiKeyResource {
  readonly place: ApiKeyPlace;
}

/** Creation to the microsecond, and id. */
export type ApiKeyPlace = readonly [createdAt: string, id: string];

/** Whose keys are meant: a range of the index either way. */
const OF_TENANT = "tenant_id = $1::int";
const OF_OPERATORS = "tenant_id is null and $1::int is null";

function listStatement(name: string, ofOwner: string) {
  return {
    name,
    text: `
select ${COLUMNS}
  from api_keys k
 where ${ofOwner}
   and (k.created_at, k.id) < ($2::timestamptz, $3::text)
 order by k.created_at desc, k.id desc
 limit $4::int`,
  };
}

const listTenantsKeys = listStatement("list_api_keys", OF_TENANT);
const listOperatorsKeys = listStatement("list_operator_api_keys", OF_OPERATORS);

const BEFORE_ALL: ApiKeyPlace = ["infinity", ""];

/** Up to so many keys of a tenant, or of operators, revoked and expired ones too, the newest first, behind a place. */
export async function listApiKeys(
  runner: Runner,
  tenantId: number | undefined,
  behind: ApiKeyPlace = BEFORE_ALL,
  limit: number,
): Promise<readonly ListedApiKey[]> {
  const statement = tenantId === undefined ? listOperatorsKeys : listTenantsKeys;
  const rows = await runner.run<Row>(statement, [tenantId ?? null, ...behind, limit]);
  return rows.map((row) => ({ ...parse(row), place: [row.created_at, row.id] }));
}

function lockStatement(name: string, ofOwner: string) {
  return { name, text: `select ${COLUMNS} from api_keys where ${ofOwner} and id = $2::text for update` };
}

const lockTenantsKey = lockStatement("lock_api_key", OF_TENANT);
const lockOperatorsKey = lockStatement("lock_operator_api_key", OF_OPERATORS);

/** A key of a tenant, or an operator's, which nobody else changes until the transaction has ended; undefined: there is none. */
export async function lockApiKey(
  transaction: Runner,
  tenantId: number | undefined,
  id: string,
): Promise<ApiKeyResource | undefined> {
  const statement = tenantId === undefined ? lockOperatorsKey : lockTenantsKey;
  const [row] = await transaction.run<Row>(statement, [tenantId ?? null, id]);
  return row && parse(row);
}

const revokeApiKeyRow = {
  name: "revoke_api_key",
  text: `update api_keys set revoked_at = now() where id = $1::text returning ${COLUMNS}`,
};

/** Revokes a key that the transaction has locked: it stops working on every replica within 10 s. */
export async function revokeApiKey(transaction: Runner, id: string): Promise<ApiKeyResource> {
  const [row] = await transaction.run<Row>(revokeApiKeyRow, [id]);
  if (row === undefined) throw new Error("an API key that was locked is gone");
  return parse(row);
}

const revokeApiKeyRows = {
  name: "revoke_api_keys",
  text: "update api_keys set revoked_at = now() where tenant_id = $1::int and revoked_at is null",
};

/** Revokes all keys of a tenant. */
export async function revokeApiKeys(transaction: Runner, tenantId: number): Promise<void> {
  await transaction.run(revokeApiKeyRows, [tenantId]);
}

function parse(row: Row): ApiKeyResource {
  return {
    id: row.id,
    role: row.role,
    label: row.label,
    namespaces: row.namespaces ?? undefined,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms ?? undefined,
    revokedAtMs: row.revoked_at_ms ?? undefined,
  };
}
