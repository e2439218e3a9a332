import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { pepperMark } from "../access/pepper.ts";
import { readArguments } from "../commands/arguments.ts";
import { CommandError, type Host } from "../commands/host.ts";
import { requireSchema } from "../commands/schema.ts";
import { withPool } from "../commands/with-pool.ts";
import { type Config, readConfig } from "../config/config.ts";
import { NO_KEYS, parseKeyring } from "../config/keyring.ts";
import type { Pool, Runner } from "../database/pool.ts";
import { readServerFacts } from "../database/replicas.ts";
import { insertAuditEvents } from "../database/tenants/audit-events.ts";
import { lockTenant, updateTenant } from "../database/tenants/tenants.ts";
import { NAMESPACE_PATTERN, NAMESPACE_RULE } from "../domain/limits.ts";
import { POLICY_SETTLES_MS } from "../domain/statement-times.ts";
import type { TenantResource } from "../domain/tenant.ts";
import { createRecordEncryption } from "../encryption/record-encryption.ts";
import type { RecordValues, ValuesRow } from "../records/engine/record-values.ts";
import {
  FORMAT,
  type MovedLine,
  OWN_TENANT_COLUMNS,
  PLAIN_TABLES,
  type PlainLine,
  type RecordLine,
} from "./moved-tenant.ts";

/**
 * `export-tenant --tenant NAME`: refuses the tenant's calls with TENANT_MOVING, waits until every replica does
 * so, and writes the tenant's settings, keys, usage and records to standard output, results in plain form. It
 * can be repeated. `onceward operator tenants resume` ends a move that is given up.
 */
export async function exportTenant(host: Host): Promise<void> {
  const { tenant: name = "" } = readArguments(host.args, { tenant: { type: "string" } });
  if (!NAMESPACE_PATTERN.test(name)) throw new CommandError(`--tenant ${NAMESPACE_RULE}`);
  const config = readConfig(host.env);
  await requireSchema(config);
  await withPool(config, async (pool) => {
    const { id } = await startMove(pool, name);
    const moving = await untilRefused(pool, id, host);
    let lines = 0;
    const write = async (line: MovedLine) => await host.write(`${JSON.stringify(line)}\n`);
    const { schemaVersion } = await readServerFacts(pool);
    await write({
      kind: "tenant",
      format: FORMAT,
      name,
      schemaVersion,
      pepperMark: pepperMark(config.ONCEWARD_API_KEY_PEPPER).toString("hex"),
      tokenFloor: String(moving.tokenFloor),
      row: moving.row,
    });
    for (const rows of [exportPlainRows(pool, id), exportRecords(pool, id, encryptionOf(config))])
      for await (const line of rows) {
        lines++;
        await write(line);
      }
    // Otherwise the rows lack what was granted.
    if ((await findMovingTenant(pool, id)).since !== moving.since) throw new CommandError(RESUMED);
    await write({ kind: "end", lines });
    host.report(
      `Exported ${lines} rows of tenant ${name}. Its calls are refused here until it is deleted or resumed.`,
    );
  });
}

const POLL_MS = 500;

/** Marks the tenant as moving, with an audit event, unless it is marked. @throws CommandError if there is no such tenant. */
async function startMove(pool: Pool, name: string): Promise<TenantResource> {
  return await pool.transaction(async (transaction) => {
    const was = await lockTenant(transaction, name);
    if (was === undefined || was.state === "DELETING") throw new CommandError(`There is no tenant ${name}.`);
    if (was.state === "MOVING") return was;
    const event = {
      tenant: was,
      actor: "onceward-server",
      action: "ExportTenant",
      target: `tenant ${name}`,
      before: { state: was.state },
      after: { state: "MOVING" },
      requestId: randomUUID(),
      calls: 1,
    };
    await insertAuditEvents(transaction, [event]);
    return await updateTenant(transaction, { ...was, state: "MOVING" });
  });
}

/**
 * Waits until every replica refuses the tenant's calls. This process' own clock counts the wait, also of a tenant that was moving
 * already: by a database clock that was set ahead meanwhile, replicas that still grant claims would have refused them for long.
 *
 * @throws CommandError if a record job of the tenant is unfinished: it would be lost; if the tenant is resumed.
 */
async function untilRefused(pool: Pool, tenantId: number, host: Host): Promise<MovingTenant> {
  const startedAtMs = performance.now();
  host.report(`Waiting for ${POLICY_SETTLES_MS / 1000} s until every replica refuses the tenant's calls.`);
  let moving = await findMovingTenant(pool, tenantId);
  for (;;) {
    if (moving.since === "") throw new CommandError(RESUMED);
    const leftMs = POLICY_SETTLES_MS - (performance.now() - startedAtMs);
    if (leftMs <= 0) break;
    await pause(Math.min(leftMs, POLL_MS));
    moving = await findMovingTenant(pool, tenantId);
  }
  if (moving.unfinishedJobs > 0) {
    throw new CommandError(
      `${moving.unfinishedJobs} record jobs of the tenant are unfinished. Export it again once they are finished or cancelled.`,
    );
  }
  return moving;
}

const RESUMED = "The tenant was resumed during the export, which is therefore not complete. Export it again.";

/** Returns the encryption of records with the configured keys. */
export function encryptionOf({ ONCEWARD_ENCRYPTION_KEYS: keys }: Config): RecordValues {
  return createRecordEncryption(parseKeyring(keys ?? "") ?? NO_KEYS, () => {});
}

/** A tenant that is moving, as one statement read it. */
export interface MovingTenant {
  /** Its settings, as JSON, and the last loss of its records, in this installation or in an earlier one. */
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
select (to_jsonb(t) - '${OWN_COLUMNS}'::text[]
        || jsonb_build_object('records_lost_at', greatest(t.records_lost_at, i.records_lost_at)))::text as row,
       coalesce(to_jsonb(t.moving_since) #>> '{}', '') as since,
       (select count(*) from record_jobs j where j.tenant_id = t.id and j.finished_at is null)::int as "unfinishedJobs",
       greatest(extract(epoch from clock_timestamp()) * 1000000, i.token_floor) + 10000000 as "tokenFloor"
  from tenants t, installation i
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
select (to_jsonb(r) - 'tenant_id')::text as row, array[${names.map((name) => `to_jsonb(${name}) #>> '{}'`).join(", ")}] as key
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
