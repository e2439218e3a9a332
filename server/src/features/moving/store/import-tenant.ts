import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { withConnection } from "../../../core/store/connection.ts";
import { raiseTokenFloor, readInstallation } from "../../../core/store/installation.ts";
import type { Runner } from "../../../core/store/pool.ts";
import type { RecordValues } from "../../../core/store/records/record-values.ts";
import { textArray } from "../../../core/store/sql-arrays.ts";
import { insertAuditEvents } from "../../../core/store/tenants/audit-events.ts";
import {
  type MovedLine,
  OWN_TENANT_COLUMNS,
  type PLAIN_TABLES,
  type PlainLine,
  type RecordLine,
  type TenantLine,
} from "./moved-tenant.ts";

/** A tenant to store. */
export interface TenantImport {
  readonly databaseUrl: string;
  readonly tenant: TenantLine;
  /** The lines after the first. */
  readonly lines: AsyncIterable<MovedLine>;
  /** Rows of these tables are skipped. */
  readonly without: ReadonlySet<(typeof PLAIN_TABLES)[number]>;
  readonly encryption: RecordValues;
  readonly requestId: string;
}

/** The number of stored records, or why nothing was stored. */
export type TenantImported =
  | { readonly kind: "imported"; readonly records: number }
  | { readonly kind: "name_taken" };

/** A connection in a transaction. */
type Transaction = pg.Client;

/** Postgres rolls the transaction back if the next line takes longer. */
const IDLE_TIMEOUT_MS = 60_000;

/**
 * Stores a tenant and serves it: everything in one transaction, so that an import that fails leaves nothing but a higher
 * floor of fencing tokens. Takes 7 s at least if the old home's clock was ahead of this one's.
 *
 * @throws Error if the lines end too early, or if Postgres refuses a row.
 */
export function storeTenant(options: TenantImport): Promise<TenantImported> {
  return withConnection({ connectionString: options.databaseUrl }, async (client) => {
    const knownAtMs = await raiseFloor(runnerOn(client), Number(options.tenant.tokenFloor));
    await client.query("begin");
    // The service's role may have shorter limits, which are for its calls.
    await client.query("set local statement_timeout = '60s'");
    await client.query(`set local idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS}`);
    try {
      const imported = await storeIn(client, options);
      await delay(Math.max(0, knownAtMs - performance.now()));
      await client.query(imported.kind === "imported" ? "commit" : "rollback");
      return imported;
    } catch (error) {
      await client.query("rollback").catch(() => {});
      throw error;
    }
  });
}

/** Two heartbeats, and a second: by then each replica has read a floor that was stored before. */
const FLOOR_KNOWN_AFTER_MS = 7000;
/** A row stays for three minutes at least, by which clocks may differ. */
const AHEAD_US = 60_000_000;

/**
 * Raises the floor of fencing tokens, and returns when the tenant may be served, as performance.now() counts: at once, or
 * once replicas know a floor that is ahead of the clock.
 */
async function raiseFloor(runner: Runner, tokenFloor: number): Promise<number> {
  const installation = await readInstallation(runner);
  await raiseTokenFloor(runner, tokenFloor);
  const isAhead = tokenFloor > (installation?.clockUs ?? 0) + AHEAD_US;
  return isAhead ? performance.now() + FLOOR_KNOWN_AFTER_MS : 0;
}

async function storeIn(client: Transaction, options: TenantImport): Promise<TenantImported> {
  const { tenant, lines, without, encryption, requestId } = options;
  const tenantId = await insertTenant(client, tenant);
  if (tenantId === undefined) return { kind: "name_taken" };
  const rows = new RowWriter(client, tenantId, encryption, tenant.tokenFloor);
  let count = 0;
  let ended = false;
  for await (const line of lines) {
    if (ended) throw new Error("a line follows the last one");
    switch (line.kind) {
      case "tenant":
        throw new Error("a second tenant follows");
      case "row":
        count++;
        if (!without.has(line.table)) await rows.add(line);
        break;
      case "record":
        count++;
        await rows.add(line);
        break;
      case "end":
        if (line.lines !== count) throw new Error(`${line.lines} lines were written, ${count} arrived`);
        ended = true;
        break;
      default:
        line satisfies never;
    }
  }
  if (!ended) throw new Error("the last line is missing: the export was cut off");
  await rows.flush();
  await insertAuditEvents(runnerOn(client), [
    {
      tenant: { id: tenantId, name: tenant.name },
      actor: "onceward-server",
      action: "ImportTenant",
      target: `tenant ${tenant.name}`,
      after: { records: rows.records },
      requestId,
      calls: 1,
    },
  ]);
  return { kind: "imported", records: rows.records };
}

function runnerOn(client: pg.Client): Runner {
  return { run: async (statement, parameters) => (await client.query(statement.text, [...parameters])).rows };
}

async function insertTenant(
  client: Transaction,
  { name, row: text }: TenantLine,
): Promise<number | undefined> {
  const fields = fieldsOf("tenants", text);
  const own = OWN_TENANT_COLUMNS.find((column) => column in fields);
  if (own !== undefined)
    throw new Error(`the tenant's row has the column ${own}, which each installation sets itself`);
  const row = withValues(text, { name });
  const columns = await columnsOf(client, "tenants", { ...fields, name });
  const { rows } = await client.query<{ id: number }>(
    `insert into tenants (${columns}) select ${columns} from jsonb_populate_record(null::tenants, $1::jsonb)
     on conflict (name) do nothing
     returning id`,
    [row],
  );
  return rows[0]?.id;
}

/** Returns those columns of a table that a row has, quoted. @throws Error if the row has a column that the table lacks. */
async function columnsOf(client: Transaction, table: string, row: object): Promise<string> {
  const names = Object.keys(row);
  const { rows } = await client.query<{ quoted: string }>(
    `select quote_ident(attname) as quoted from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped and attname = any ($2::text[])`,
    [table, names],
  );
  if (rows.length !== names.length) throw new Error(`a row of ${table} has columns that this schema lacks`);
  return rows.map(({ quoted }) => quoted).join(", ");
}

/** Rows and bytes of one statement. */
const MAX_ROWS = 500;
const MAX_BYTES = 4 * 1024 * 1024;

type Table = PlainLine["table"] | "records";

/** Writes rows of one table after another, many in one statement. */
class RowWriter {
  readonly #client: Transaction;
  readonly #tenantId: number;
  readonly #encryption: RecordValues;
  readonly #tokenFloor: number;
  readonly #columns = new Map<Table, string>();
  #table: Table = "records";
  #rows: string[] = [];
  #bytes = 0;
  /** Records that were added. */
  records = 0;

  constructor(client: Transaction, tenantId: number, encryption: RecordValues, tokenFloor: string) {
    this.#tokenFloor = Number(tokenFloor);
    this.#client = client;
    this.#tenantId = tenantId;
    this.#encryption = encryption;
  }

  async add(line: PlainLine | RecordLine): Promise<void> {
    const table = line.kind === "record" ? "records" : line.table;
    if (table !== this.#table) await this.flush();
    this.#table = table;
    const fields = fieldsOf(table, line.row);
    if (line.kind === "record") this.#checkToken(fields);
    const row = line.kind === "record" ? this.#recordRow(line) : line.row;
    if (line.kind === "record") this.records++;
    this.#rows.push(row);
    this.#bytes += row.length;
    if (this.#rows.length >= MAX_ROWS || this.#bytes >= MAX_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    const rows = this.#rows;
    const [first] = rows;
    if (first === undefined) return;
    this.#rows = [];
    this.#bytes = 0;
    const table = this.#table;
    const columns =
      this.#columns.get(table) ?? (await columnsOf(this.#client, table, JSON.parse(first) as object));
    this.#columns.set(table, columns);
    await this.#client.query(
      `insert into ${table} (tenant_id, ${columns})
       select $1::int, ${columns}
         from unnest($2::text[]) as i (row)
        cross join lateral jsonb_populate_record(null::${table}, i.row::jsonb)`,
      [this.#tenantId, textArray(rows)],
    );
  }

  /** Checks that tokens of this installation will be higher than a record's. */
  #checkToken({ fencing_token: token }: Readonly<Record<string, unknown>>): void {
    if (typeof token !== "number" || token < 1 || token > this.#tokenFloor)
      throw new Error("a record's fencing token is not between 1 and the tenant's tokenFloor");
  }

  /** Returns a record's row with its values as this installation stores them. */
  #recordRow({ namespace, key, row, digest, payload, metadata, checkpoint }: RecordLine): string {
    const id = { tenantId: this.#tenantId, namespace, key };
    const { keyId } = this.#encryption;
    const result =
      digest === null
        ? undefined
        : this.#encryption.storedResult(id, {
            digest: Buffer.from(digest, "base64"),
            payload: payload === null ? undefined : Buffer.from(payload, "base64"),
            metadata: metadata ?? undefined,
          });
    const state =
      checkpoint === null ? undefined : this.#encryption.storedState(id, Buffer.from(checkpoint, "base64"));
    const values = {
      result_digest: bytea(result?.digest),
      result_payload: bytea(result?.payload),
      result_metadata: result?.metadata ?? null,
      result_key_id: result === undefined ? null : keyId,
      checkpoint_state: bytea(state),
      checkpoint_key_id: state === undefined ? null : keyId,
    };
    // Values were encrypted for the line's namespace and key: the row cannot have others.
    return withValues(row, { namespace, key, ...values });
  }
}

/** Returns the columns of a row. @throws Error unless the text is a JSON object with columns. */
function fieldsOf(table: Table | "tenants", row: string): Readonly<Record<string, unknown>> {
  let fields: unknown;
  try {
    fields = JSON.parse(row);
  } catch {
    throw new Error(`a row of ${table} is not JSON`);
  }
  if (
    typeof fields !== "object" ||
    fields === null ||
    Array.isArray(fields) ||
    Object.keys(fields).length === 0
  )
    throw new Error(`a row of ${table} is not a JSON object with columns`);
  return fields as Readonly<Record<string, unknown>>;
}

/** Sets values of a row that `fieldsOf` accepts. The row stays a text: parsed, it would lose digits of an int64. */
function withValues(row: string, values: object): string {
  return `${row.trimEnd().slice(0, -1)}, ${JSON.stringify(values).slice(1)}`;
}

function bytea(bytes: Uint8Array | undefined): string | null {
  return bytes === undefined ? null : `\\x${Buffer.from(bytes).toString("hex")}`;
}
