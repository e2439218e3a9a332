import type { Runner } from "./pool.ts";
import { fromRow, type RowOf } from "./rows.ts";

/** The installation as one statement read it. */
export interface Installation {
  /**
   * Identifies this installation among all that share a Redis. Random, and replaced after each restore or
   * promotion.
   */
  readonly id: string;
  /** Whether the id was created in this database; `unmarked` if no replica has used the database yet. */
  readonly origin: "here" | "elsewhere" | "unmarked";
  /**
   * The stored floor of fencing tokens, which only rises: heartbeats raise it to the clock. 0: no heartbeat has raised it
   * yet.
   */
  readonly tokenFloor: number;
  /**
   * The stored floor when the installation got its id; undefined: the loss that it may show is stored, or there was no
   * earlier id.
   */
  readonly floorFound: number | undefined;
  /** When records were lost the last time, in milliseconds since the Unix epoch; undefined: never. */
  readonly recordsLostAtMs: number | undefined;
  /** Microseconds of the database's clock since the Unix epoch. */
  readonly clockUs: number;
}

const selectInstallation = {
  name: "select_installation",
  text: `
select id,
       case when made_in is null then 'unmarked' when made_in = database_identity(xmin) then 'here' else 'elsewhere' end as origin,
       current_setting('transaction_read_only') = 'on' as "readOnly",
       token_floor::numeric as "tokenFloor", floor_found::numeric as "floorFound", extract(epoch from records_lost_at) * 1000 as "recordsLostAtMs",
       extract(epoch from clock_timestamp()) * 1000000 as "clockUs"
  from installation`,
};

type InstallationRow = RowOf<Installation> & { readonly readOnly: boolean };

/** Reads the installation. Returns undefined if the database accepts no writes. */
export async function readInstallation(runner: Runner): Promise<Installation | undefined> {
  const [row] = await runner.run<InstallationRow>(selectInstallation, []);
  if (row === undefined) throw new Error("the installation has no id");
  const { readOnly, ...look } = row;
  return readOnly ? undefined : fromRow<Installation>(look);
}

const raiseStoredFloor = {
  name: "raise_token_floor",
  text: `
update installation i
   set token_floor = greatest(c.us, $1::bigint), made_in = database_identity(pg_current_xact_id()::xid)
  from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as us) c
 where (token_floor < c.us - 1000000 or token_floor < $1::bigint and c.us < $1::bigint)
   and (made_in is null or made_in = database_identity(i.xmin))`,
};

/**
 * Raises the stored floor of fencing tokens to the clock, in steps of a second, so that many replicas seldom write it; and
 * to a floor that is known, if the clock is behind it. Stores nothing in a database that was restored or promoted, until the installation
 * is renewed.
 */
export async function raiseTokenFloor(runner: Runner, knownFloor: number): Promise<void> {
  await runner.run(raiseStoredFloor, [knownFloor]);
}

const markInstallation = {
  name: "mark_installation",
  text: `
update installation
   set made_in = database_identity(pg_current_xact_id()::xid)
 where made_in is null`,
};

/** Stores that the id was created in this database, unless an origin is stored already. */
export async function markOrigin(runner: Runner): Promise<void> {
  await runner.run(markInstallation, []);
}

const replaceInstallationId = {
  name: "replace_installation_id",
  text: `
update installation
   set id = gen_random_uuid(), made_in = database_identity(pg_current_xact_id()::xid), floor_found = token_floor,
       token_floor = greatest(token_floor, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
 where id = $1::uuid`,
};

/** Replaces the installation's id and nothing else, unless it is no longer `knownId`. */
export async function replaceId(runner: Runner, knownId: string): Promise<void> {
  await runner.run(replaceInstallationId, [knownId]);
}

const renewInstallationId = {
  name: "renew_installation",
  text: "select renew_installation($1::uuid, $2::bigint) as renewed",
};

/**
 * Replaces the installation's id, and raises the floor of fencing tokens to `knownFloor` and the sequences of ids, but for
 * those of tenants, beyond every number that they can have given out. Returns false, and changes nothing, if the id is not
 * `knownId` at the statement.
 */
export async function renewInstallation(
  runner: Runner,
  knownId: string,
  knownFloor: number,
): Promise<boolean> {
  const [row] = await runner.run<{ renewed: boolean }>(renewInstallationId, [knownId, knownFloor]);
  return row?.renewed === true;
}

const raiseIdsOfTenants = { name: "raise_tenant_ids", text: "select raise_tenant_ids()" };

/** Raises the sequence of tenants' ids beyond every number that it can have given out. No rollback takes that back. */
export async function raiseTenantIds(runner: Runner): Promise<void> {
  await runner.run(raiseIdsOfTenants, []);
}

const markRecordsLost = {
  name: "mark_records_lost",
  text: `
update installation
   set records_lost_at = greatest(records_lost_at, clock_timestamp()), floor_found = null,
       token_floor = token_floor + 1, made_in = database_identity(pg_current_xact_id()::xid)
 where floor_found < $1::bigint`,
};

/**
 * Stores that records of keys that were created until now may be lost, if the installation got its id with a floor of fencing
 * tokens below `knownFloor`, and that is not stored yet. A higher floor comes with it: a backup without this loss has
 * a lower one than each replica that knows of it.
 */
export async function markLoss(runner: Runner, knownFloor: number): Promise<void> {
  await runner.run(markRecordsLost, [knownFloor]);
}
