import { HEARTBEAT_CONNECTIONS } from "../../background/heartbeat.ts";
import type { Runner } from "../../database/pool.ts";
import { readServerFacts } from "../../database/replicas.ts";
import { ADMINISTRATION_CONNECTIONS } from "../../records/engine/administration-pool.ts";
import type { Check } from "../findings.ts";
import { readPostgresSettings } from "./settings.ts";

/** Another role's application name is hidden from a role without pg_read_all_stats, and counts as another. */
const readLimits = {
  name: "read_connection_limits",
  text: `
select (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user) as "ofRole",
       (select nullif(datconnlimit, -1) from pg_database where datname = current_database()) as "ofDatabase",
       (select count(*) from pg_stat_activity
         where backend_type = 'client backend' and application_name is distinct from 'onceward')::int as others`,
};

/** Reads the limits of connections, and counts the connections of others. */
export async function readConnectionLimits(runner: Runner) {
  const [row] = await runner.run<{
    /** The limit of the role; null: none. */
    readonly ofRole: number | null;
    /** The limit of the database; null: none. */
    readonly ofDatabase: number | null;
    /** Connections that are not the service's. */
    readonly others: number;
  }>(readLimits, []);
  if (row === undefined) throw new Error("read_connection_limits returned no row");
  return row;
}

/** Compares the connections that all replicas may open with those that Postgres accepts. */
export const connectionsCheck: Check = {
  name: "connections",
  async examine({ config, runner, pooler }) {
    // A pooler opens fewer connections than its clients.
    if (pooler.mode !== "none") return [];
    const settings = await readPostgresSettings(runner);
    const reserved = Number(settings.superuser_reserved_connections) + Number(settings.reserved_connections);
    const { ofRole, ofDatabase, others } = await readConnectionLimits(runner);
    const ofServer = Number(settings.max_connections) - reserved - others;
    const free = Math.min(ofServer, ofRole ?? ofServer, ofDatabase ?? ofServer);
    // Before the first replica starts, there is one to count with.
    const replicas = Math.max((await readServerFacts(runner)).replicas, 1);
    const ofReplica = config.ONCEWARD_POOL_SIZE + ADMINISTRATION_CONNECTIONS + HEARTBEAT_CONNECTIONS;
    const needed = replicas * ofReplica;
    const product = `${replicas} × ${ofReplica} = ${needed}`;
    const left =
      free === ofServer
        ? `max_connections leaves ${free} beside ${others} of others`
        : `the limit of the ${free === ofRole ? "role" : "database"} is ${free}`;
    if (needed > free) {
      return [
        { id: "max_connections_exceeded", summary: `Replicas may open ${product} connections; ${left}.` },
      ];
    }
    if (needed + ofReplica > free) {
      const summary = `Replicas may open ${product} connections; ${left}: too few for one more replica.`;
      return [{ id: "max_connections_tight", summary }];
    }
    return [];
  },
};
