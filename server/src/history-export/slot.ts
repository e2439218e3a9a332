import { CommandError } from "../commands/host.ts";
import { withConnection } from "../database/connection.ts";
import { sqlStateOf } from "../database/statement-errors.ts";
import { HISTORY_COLUMNS, RECORD_COLUMNS, RESULT_COLUMNS } from "./events.ts";

/** What a stream lacks between its last line and its new slot. */
export interface Gap {
  /** The slot's first position. */
  readonly lsn: string;
  readonly until: string;
  /** There was none, Postgres has dropped its log, or did not publish all of it. */
  readonly cause: "no_slot" | "slot_lost" | "publication_changed";
}

const PAGE = "See deploy/export.md.";

/** Returns the name of the publication with the columns that leave Postgres. */
export function publicationOf(withResults: boolean): string {
  return withResults ? "onceward_history_results" : "onceward_history";
}

/**
 * Makes the publication and the slot unless they exist, and returns what the slot has confirmed. A slot is made again if its
 * publication was changed: Postgres leaves out what was not published when it was written.
 *
 * @param isStale whether the stream found that (`StaleSlotError`).
 * @param announce stores the gap before a slot that is made is kept, so that no kill hides it.
 * @throws CommandError with what to do, if Postgres or the role is not prepared.
 */
export function prepareSlot(
  connectionString: string,
  slot: string,
  withResults: boolean,
  isStale: boolean,
  announce: (gap: Gap) => Promise<void>,
): Promise<string> {
  const config = { connectionString, options: "-c statement_timeout=0 -c lock_timeout=0" };
  return withConnection(config, async (client) => {
    /** Returns the first row. @param remedy what to do if the role may not run this. */
    async function run(sql: string, values: readonly string[] = [], remedy?: string) {
      try {
        const { rows } = await client.query<Record<string, string | null>>(sql, [...values]);
        return rows[0];
      } catch (cause) {
        const isForbidden = remedy !== undefined && sqlStateOf(cause) === "42501";
        throw isForbidden ? new CommandError(`${remedy} ${PAGE}`, { cause }) : cause;
      }
    }

    const problem = (await run(FIND_PROBLEM))?.problem;
    if (problem) throw new CommandError(`${problem} ${PAGE}`);
    const name = publicationOf(withResults);
    const records = sorted(RECORD_COLUMNS, ...(withResults ? [RESULT_COLUMNS] : []));
    const published = (await run(READ_PUBLICATION, [name]))?.tables;
    const tables = `key_histories (${sorted(HISTORY_COLUMNS)}), records (${records})`;
    const publish = (make: string) =>
      run(`${make} table ${tables}`, [], `Run as the owner of the tables: ${make} table ${tables};`);
    // The stream finds a slot that is older than its publication, but not one that is older than a change of it.
    if (published === null) await publish(`create publication ${name} for`);

    const kept = await run(READ_SLOT, [slot]);
    if (kept?.state === "foreign")
      throw new CommandError(`The slot ${slot} is of another plugin or database.`);
    if (kept?.state === "usable" && published === tables && !isStale) return kept.lsn ?? "";
    if ((await run("show max_slot_wal_keep_size"))?.max_slot_wal_keep_size === "-1")
      throw new CommandError(
        `Set max_slot_wal_keep_size: an export that is away would fill the disk. ${PAGE}`,
      );
    const remedy = "Run as an administrator: alter role … with replication;";
    if (kept !== undefined) await run("select pg_drop_replication_slot($1)", [slot], remedy);
    if (published !== null && published !== tables) await publish(`alter publication ${name} set`);
    // A temporary slot is gone with this connection: the lasting one exists only once the gap is stored.
    const made = await run(MAKE_SLOT, [`${slot}_new`], remedy);
    const { lsn = "", until = "" } = made as Record<"lsn" | "until", string>;
    const lost = kept?.state === "lost" ? "slot_lost" : "publication_changed";
    await announce({ lsn, until, cause: kept === undefined ? "no_slot" : lost });
    await run("select pg_copy_logical_replication_slot($1, $2, false)", [`${slot}_new`, slot]);
    return lsn;
  });
}

const sorted = (...columns: readonly string[]) => columns.join(", ").split(", ").sort().join(", ");

const FIND_PROBLEM = `
select case
  when exists (select from pg_extension where extname = 'citus')
    then 'Records on Citus are not exported: each node has a log of its own.'
  when pg_is_in_recovery() then 'This Postgres is a standby: export from the primary.'
  when current_setting('wal_level') <> 'logical' then 'Set wal_level = logical and restart Postgres.'
  when current_setting('synchronous_standby_names') like '%*%'
    then 'Name the standbys in synchronous_standby_names: by * commits would wait for the export.' end as problem`;

/** Tables and columns as a publication is made with them; null: it is missing. */
const READ_PUBLICATION = `
select string_agg(tablename || ' (' || (select string_agg(c, ', ' order by c collate "C") from unnest(attnames) c) || ')',
                  ', ' order by tablename) as tables
  from pg_publication_tables
 where pubname = $1`;

const READ_SLOT = `
select s.confirmed_flush_lsn::text as lsn,
       case when s.plugin <> 'pgoutput' or s.database <> current_database() then 'foreign'
            when s.wal_status = 'lost' then 'lost' else 'usable' end as state
  from pg_replication_slots s
 where s.slot_name = $1`;

const MAKE_SLOT = `
select lsn::text as lsn, to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as until
  from pg_create_logical_replication_slot($1, 'pgoutput', true)`;
