import { HEARTBEAT_CONNECTIONS } from "../../../core/background/heartbeat.ts";
import { ADMINISTRATION_CONNECTIONS } from "../../../core/store/batching/administration-pool.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { readServerFacts } from "../../../core/store/replicas.ts";
import { fromRow, type RowOf } from "../../../core/store/rows.ts";
import type { Check } from "../check.ts";
import type { Observation } from "../findings.ts";
import { readPostgresSettings } from "./settings.ts";

/** How many connections Postgres accepts from the service's role. */
interface ConnectionLimits {
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
select (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user) as "ofRole",
       (select nullif(datconnlimit, -1) from pg_database where datname = current_database()) as "ofDatabase",
       (select count(*) from pg_stat_activity
         where backend_type = 'client backend' and application_name is distinct from 'onceward')::int as others`,
};

/** Reads the limits of connections, and counts the connections of others. */
export async function readConnectionLimits(runner: Runner): Promise<ConnectionLimits> {
  const [row] = await runner.run<RowOf<ConnectionLimits>>(readLimits, []);
  if (row === undefined) throw new Error("read_connection_limits returned no row");
  return fromRow<ConnectionLimits>(row);
}

/** Compares the connections that all replicas may open with those that Postgres accepts. */
export const connectionsCheck: Check = {
  name: "connections",
  needsPostgres: true,
  async examine({ config, runner, pooler }) {
    // A pooler opens fewer connections than its clients.
    if (pooler.mode !== "none") return [];
    const settings = await readPostgresSettings(runner);
    const reserved =
      Number(settings.superuser_reserved_connections) + Number(settings.reserved_connections || 0);
    const { replicas } = await readServerFacts(runner);
    return judgeConnections({
      limits: await readConnectionLimits(runner),
      acceptedByServer: Number(settings.max_connections) - reserved,
      replicas,
      ofReplica: config.ONCEWARD_POOL_SIZE + ADMINISTRATION_CONNECTIONS + HEARTBEAT_CONNECTIONS,
    });
  },
};

/** Returns whether the replicas, or one more of them, may open more connections than are accepted. */
export function judgeConnections(facts: {
  readonly limits: ConnectionLimits;
  /** `max_connections` without those reserved for other roles. */
  readonly acceptedByServer: number;
  /** Live replicas; they count as one before the first one starts. */
  readonly replicas: number;
  /** The connections that a replica may open. */
  readonly ofReplica: number;
}): readonly Observation[] {
  const { limits, acceptedByServer, ofReplica } = facts;
  const { ofRole = Number.POSITIVE_INFINITY, ofDatabase = Number.POSITIVE_INFINITY, others } = limits;
  const free = Math.min(acceptedByServer - others, ofRole, ofDatabase);
  const replicas = Math.max(facts.replicas, 1);
  const needed = replicas * ofReplica;
  const product = `${replicas} × ${ofReplica} = ${needed}`;
  const left =
    free === acceptedByServer - others
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
}
