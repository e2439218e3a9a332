import type { Runner } from "../../../core/store/pool.ts";
import type { RecordValues, ValuesRow } from "../../../core/store/records/record-values.ts";
import { OWN_TENANT_COLUMNS, PLAIN_TABLES, type PlainLine, type RecordLine } from "./moved-tenant.ts";

/** A tenant that is moving, as one statement read it. */
export interface MovingTenant {
  /** Its settings, as JSON. */
  readonly row: string;
  /** When its calls began to be refused, as Postgres writes an instant; empty: they are not. */
  readonly since: string;
  readonly unfinishedJobs: number;
  /** Above the fencing tokens of all its records, also of those that replicas gave out since their last heartbeats. */
  readonly tokenFloor: number;
}

const OWN_COLUMNS = `{${OWN_TENANT_COLUMNS.join(",")}}`;

const readMovingTenant = {
  name: "read_moving_tenant",
  text: `
select (to_jsonb(t) - '${OWN_COLUMNS}'::text[])::text as row,
       coalesce(t.moving_since::text, '') as since,
       (select count(*) from record_jobs j where j.tenant_id = t.id and j.finished_at is null)::int as "unfinishedJobs",
       greatest(date_part('epoch', clock_timestamp()) * 1000000, (select token_floor from installation)) + 10000000 as "tokenFloor"
  from tenants t
 where t.id = $1::int`,
};

/** Reads a tenant that exists. */
export async function findMovingTenant(runner: Runner, tenantId: number): Promise<MovingTenant> {
  const [tenant] = await runner.run<MovingTenant>(readMovingTenant, [tenantId]);
  if (tenant === undefined) throw new Error("the tenant is missing");
  return tenant;
}

/** Rows of a page: at most 200 MiB of the largest results. */
const PAGE_ROWS = 100;

/** A column by which pages are read: its name, its type, and a value before all others. */
type KeyColumn = readonly [name: string, type: string, before: string];

/** The columns after the tenant in an index of the table, so that a page reads its own rows only. */
const KEYS: Readonly<Record<(typeof PLAIN_TABLES)[number], readonly KeyColumn[]>> = {
  namespaces: [["name", "text", ""]],
  usage_hours: [
    ["hour", "timestamptz", "-infinity"],
    ["namespace", "text", ""],
  ],
  api_keys: [
    ["created_at", "timestamptz", "-infinity"],
    ["id", "text", ""],
  ],
};

function pageStatement(table: (typeof PLAIN_TABLES)[number]) {
  const keys = KEYS[table];
  const names = keys.map(([name]) => `r.${name}`);
  return {
    name: `export_${table}`,
    text: `
select (to_jsonb(r) - 'tenant_id')::text as row, array[${names.map((name) => `${name}::text`).join(", ")}] as key
  from ${table} r
 where r.tenant_id = $1::int
   and (${names.join(", ")}) > (${keys.map(([, type], n) => `$${n + 3}::${type}`).join(", ")})
 order by ${names.join(", ")}
 limit $2::int`,
  };
}

/** Reads the rows of a tenant that move as they are, page by page. */
export async function* exportPlainRows(runner: Runner, tenantId: number): AsyncGenerator<PlainLine> {
  for (const table of PLAIN_TABLES) {
    const statement = pageStatement(table);
    let after = KEYS[table].map(([, , before]) => before);
    for (;;) {
      const parameters = [tenantId, PAGE_ROWS, ...after];
      const rows = await runner.run<{ row: string; key: string[] }>(statement, parameters);
      for (const { row } of rows) yield { kind: "row", table, row };
      after = rows.at(-1)?.key ?? after;
      if (rows.length < PAGE_ROWS) break;
    }
  }
}

const exportRecordPage = {
  name: "export_records",
  text: `
select (to_jsonb(r) - '{tenant_id,ambiguous_from,result_digest,result_metadata,result_payload,result_key_id}'::text[]
                    - '{checkpoint_state,checkpoint_key_id}'::text[])::text as row,
       r.tenant_id, r.namespace, r.key, r.result_key_id, r.checkpoint_key_id, encode(r.result_digest, 'hex') as result_digest,
       r.result_metadata, r.result_payload, r.checkpoint_state
  from records r
 where r.tenant_id = $1::int
   and (r.namespace, r.key) > ($2::text, $3::text)
 order by r.namespace, r.key
 limit $4::int`,
};

type RecordRow = ValuesRow & { readonly row: string };

/**
 * Reads the records of a tenant, page by page, in plain form.
 *
 * @throws Refusal RECORD_UNREADABLE if a record cannot be decrypted.
 */
export async function* exportRecords(
  runner: Runner,
  tenantId: number,
  encryption: RecordValues,
): AsyncGenerator<RecordLine> {
  let after: readonly string[] = ["", ""];
  for (;;) {
    const rows = await runner.run<RecordRow>(exportRecordPage, [tenantId, ...after, PAGE_ROWS]);
    for (const row of rows) yield recordLine(encryption.openRow(row));
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE_ROWS) return;
    after = [last.namespace, last.key];
  }
}

function recordLine(row: RecordRow): RecordLine {
  const { namespace, key, result_digest: digest } = row;
  return {
    kind: "record",
    namespace,
    key,
    row: row.row,
    digest: digest && Buffer.from(digest, "hex").toString("base64"),
    payload: row.result_payload?.toString("base64") ?? null,
    metadata: row.result_metadata,
    checkpoint: row.checkpoint_state?.toString("base64") ?? null,
  };
}
