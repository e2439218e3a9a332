import type { Runner } from "../../../core/store/pool.ts";

/** How many connections Postgres accepts from the service's role. */
export interface ConnectionLimits {
  /** The limit of the role; undefined: none. */
  readonly ofRole: number | undefined;
  /** The limit of the database; undefined: none. */
  readonly ofDatabase: number | undefined;
  /** Connections that are not the service's. */
  readonly others: number;
}

/** Another role's application name is hidden from a role without pg_read_all_stats, and counts as another. */
const readLimits = {
  name: "read_connection_limits",
  text: `
select (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user) as of_role,
       (select nullif(datconnlimit, -1) from pg_database where datname = current_database()) as of_database,
       (select count(*) from pg_stat_activity
         where backend_type = 'client backend' and application_name is distinct from 'onceward')::int as others`,
};

interface LimitsRow {
  readonly of_role: number | null;
  readonly of_database: number | null;
  readonly others: number;
}

/** Reads the limits of connections, and counts the connections of others. */
export async function readConnectionLimits(runner: Runner): Promise<ConnectionLimits> {
  const [row] = await runner.run<LimitsRow>(readLimits, []);
  if (row === undefined) throw new Error("read_connection_limits returned no row");
  return {
    ofRole: row.of_role ?? undefined,
    ofDatabase: row.of_database ?? undefined,
    others: row.others,
  };
}
