import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { configuredPeppers, pepperMark } from "../access/pepper.ts";
import { readArguments } from "../commands/arguments.ts";
import { CommandError, type Host } from "../commands/host.ts";
import { requirePepper } from "../commands/pepper.ts";
import { requireSchema } from "../commands/schema.ts";
import { withPool } from "../commands/with-pool.ts";
import { type Config, readConfig } from "../config/config.ts";
import { withConnection } from "../database/connection.ts";
import { raiseTokenFloor, readInstallation } from "../database/installation.ts";
import type { Runner } from "../database/pool.ts";
import { readServerFacts } from "../database/replicas.ts";
import { textArray } from "../database/sql-arrays.ts";
import { insertAuditEvents } from "../database/tenants/audit-events.ts";
import { requireKeyOfPass } from "../encryption/required-key.ts";
import type { RecordValues } from "../records/engine/record-values.ts";
import { encryptionOf } from "./export-tenant.ts";
import {
  MAX_LINE_BYTES,
  type MovedLine,
  OWN_TENANT_COLUMNS,
  type PlainLine,
  parseLine,
  type RecordLine,
  type TenantLine,
} from "./moved-tenant.ts";

/**
 * `import-tenant [--without-api-keys]`: stores a tenant that `export-tenant` writes to this command's standard
 * input, in one transaction, and serves it. Values are encrypted with this installation's keys; API keys keep
 * their secrets if both installations have the same pepper.
 */
export async function importTenant(host: Host): Promise<void> {
  const options = { "without-api-keys": { type: "boolean", default: false } } as const;
  const withoutApiKeys = readArguments(host.args, options)["without-api-keys"];
  const config = readConfig(host.env);
  await requireSchema(config);
  await requirePepper(config);
  // A long transaction does not go through a pooler.
  const databaseUrl = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
  const lines = readLines(host.input);
  const { value: tenant } = await lines.next();
  if (tenant?.kind !== "tenant") throw new CommandError("Standard input is not an export of a tenant.");
  const { schemaVersion } = await withPool(config, async (pool) => {
    await requireKeyOfPass(pool, config);
    return readServerFacts(pool);
  });
  if (tenant.schemaVersion !== schemaVersion) {
    throw new CommandError(
      `The other installation's schema is ${tenant.schemaVersion}, this one's ${schemaVersion}. Upgrade the older one first.`,
    );
  }
  if (!withoutApiKeys && !hasPepper(config, tenant)) {
    throw new CommandError(
      "The installations have different values of ONCEWARD_API_KEY_PEPPER, so no API key would be valid here. " +
        "Import with --without-api-keys, and create new ones.",
    );
  }
  const stored = { databaseUrl, tenant, lines, withoutApiKeys, encryption: encryptionOf(config) };
  const records = await storeTenant(stored).catch((cause: unknown) => {
    if (cause instanceof CommandError) throw cause;
    throw new CommandError("The tenant could not be imported; nothing was stored.", { cause });
  });
  if (records === undefined) throw new CommandError(`This installation has a tenant ${tenant.name} already.`);
  host.print(`Tenant ${tenant.name} is served here, with ${records} records.`);
}

function hasPepper(config: Config, tenant: TenantLine): boolean {
  const { current, second } = configuredPeppers(config);
  return [current, second].some(
    (pepper) => pepper !== undefined && pepperMark(pepper).toString("hex") === tenant.pepperMark,
  );
}

/** Reads lines of at most MAX_LINE_BYTES. @throws Error for a longer or a malformed line. */
async function* readLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<MovedLine, undefined> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    let rest = chunk;
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      yield parseLine(Buffer.concat([...parts, rest.subarray(0, end)]).toString());
      rest = rest.subarray(end + 1);
      parts = [];
      bytes = 0;
    }
    parts.push(rest);
    bytes += rest.byteLength;
    if (bytes > MAX_LINE_BYTES) throw new Error(`a line is longer than ${MAX_LINE_BYTES} bytes`);
  }
}

/** A tenant to store. */
interface TenantImport {
  readonly databaseUrl: string;
  readonly tenant: TenantLine;
  /** The lines after the first. */
  readonly lines: AsyncIterable<MovedLine>;
  readonly withoutApiKeys: boolean;
  readonly encryption: RecordValues;
}

/** Postgres rolls the transaction back if the next line takes longer. */
const IDLE_TIMEOUT_MS = 60_000;

/**
 * Stores a tenant and serves it: everything in one transaction, so that an import that fails leaves nothing but a higher
 * floor of fencing tokens. Takes 7 s at least if the old home's clock was ahead of this one's. Returns the number of records;
 * undefined if nothing was stored because the name is taken.
 *
 * @throws Error if the lines end too early, or if Postgres refuses a row; CommandError if the tenant may be stored.
 */
function storeTenant(options: TenantImport): Promise<number | undefined> {
  return withConnection({ connectionString: options.databaseUrl }, async (client) => {
    const knownAtMs = await raiseFloor(runnerOn(client), Number(options.tenant.tokenFloor));
    await client.query("begin");
    // The service's role may have shorter limits, which are for its calls.
    await client.query("set local statement_timeout = '60s'");
    await client.query(`set local idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS}`);
    let records: number | undefined;
    try {
      records = await storeIn(client, options);
      await delay(Math.max(0, knownAtMs - performance.now()));
    } catch (error) {
      await client.query("rollback").catch(() => {});
      throw error;
    }
    if (records === undefined) await client.query("rollback");
    else
      await client.query("commit").catch((cause: unknown) => {
        throw new CommandError(MAY_BE_STORED, { cause });
      });
    return records;
  });
}

/** A tenant that is served here, and resumed in its old home, would be granted its keys twice. */
const MAY_BE_STORED =
  "The answer to the last step was lost, so the tenant may be served here. Import it again, before anything else: " +
  "the import is refused if this installation has the tenant.";

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

async function storeIn(client: pg.Client, options: TenantImport): Promise<number | undefined> {
  const { tenant, lines, withoutApiKeys, encryption } = options;
  const tenantId = await insertTenant(client, tenant);
  if (tenantId === undefined) return undefined;
  const tokenFloor = Number(tenant.tokenFloor);
  const rows = createRowWriter(client, tenantId);
  let records = 0;
  let count = 0;
  let ended = false;
  for await (const line of lines) {
    if (ended) throw new Error("a line follows the last one");
    switch (line.kind) {
      case "tenant":
        throw new Error("a second tenant follows");
      case "row":
        count++;
        if (withoutApiKeys && line.table === "api_keys") break;
        fieldsOf(line.table, line.row);
        await rows.add(line.table, line.row);
        break;
      case "record":
        count++;
        records++;
        await rows.add("records", recordRow(line, tenantId, tokenFloor, encryption));
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
  const event = {
    tenant: { id: tenantId, name: tenant.name },
    actor: "onceward-server",
    action: "ImportTenant",
    target: `tenant ${tenant.name}`,
    after: { records },
    requestId: randomUUID(),
    calls: 1,
  };
  await insertAuditEvents(runnerOn(client), [event]);
  return records;
}

function runnerOn(client: pg.Client): Runner {
  return { run: async (statement, parameters) => (await client.query(statement.text, [...parameters])).rows };
}

async function insertTenant(client: pg.Client, { name, row: text }: TenantLine): Promise<number | undefined> {
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
async function columnsOf(client: pg.Client, table: string, row: object): Promise<string> {
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

/** Returns functions that write rows of one table after another, many in one statement. `fieldsOf` accepts each row. */
function createRowWriter(client: pg.Client, tenantId: number) {
  const columnsByTable = new Map<Table, string>();
  let table: Table = "records";
  let rows: string[] = [];
  let bytes = 0;

  async function flush(): Promise<void> {
    const [first] = rows;
    if (first === undefined) return;
    const columns =
      columnsByTable.get(table) ?? (await columnsOf(client, table, JSON.parse(first) as object));
    columnsByTable.set(table, columns);
    await client.query(
      `insert into ${table} (tenant_id, ${columns})
       select $1::int, ${columns}
         from unnest($2::text[]) as i (row)
        cross join lateral jsonb_populate_record(null::${table}, i.row::jsonb)`,
      [tenantId, textArray(rows)],
    );
    rows = [];
    bytes = 0;
  }

  async function add(next: Table, row: string): Promise<void> {
    if (next !== table) await flush();
    table = next;
    rows.push(row);
    bytes += row.length;
    if (rows.length >= MAX_ROWS || bytes >= MAX_BYTES) await flush();
  }

  return { add, flush };
}

/**
 * Returns a record's row with its values as this installation stores them.
 *
 * @throws Error unless the tokens of this installation will be higher than the record's.
 */
function recordRow(
  { namespace, key, row, digest, payload, metadata, checkpoint }: RecordLine,
  tenantId: number,
  tokenFloor: number,
  encryption: RecordValues,
): string {
  const { fencing_token: token } = fieldsOf("records", row);
  if (typeof token !== "number" || token < 1 || token > tokenFloor)
    throw new Error("a record's fencing token is not between 1 and the tenant's tokenFloor");
  const id = { tenantId, namespace, key };
  const { keyId } = encryption;
  const result =
    digest === null
      ? undefined
      : encryption.storedResult(id, {
          digest: Buffer.from(digest, "base64"),
          payload: payload === null ? undefined : Buffer.from(payload, "base64"),
          metadata: metadata ?? undefined,
        });
  const state =
    checkpoint === null ? undefined : encryption.storedState(id, Buffer.from(checkpoint, "base64"));
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
