import type { Replica } from "@onceward/client/proto";

/** What a degraded state means, in the words of the runbook. */
export interface DegradedWords {
  readonly title: string;
  readonly meaning: string;
  /** The section of the repository's runbook. */
  readonly runbook: string;
}

const DEGRADED: Readonly<Record<string, DegradedWords>> = {
  database_unreachable: {
    title: "Database unreachable",
    meaning:
      "Postgres does not answer this replica. Its calls are refused until it does, except some duplicates.",
    runbook: "deploy/runbook.md#the-database-is-unreachable",
  },
  redis_bypassed: {
    title: "Redis bypassed",
    meaning: "Redis fails or is slow. The replica uses its memory and Postgres: duplicates cost more.",
    runbook: "deploy/runbook.md#redis-is-bypassed",
  },
  schema_ahead: {
    title: "Schema ahead",
    meaning: "The database has a migration of a newer version. Normal during an upgrade, until it ends.",
    runbook: "deploy/runbook.md#the-schema-is-ahead",
  },
  pool_saturated: {
    title: "Pool saturated",
    meaning: "Statements wait for a connection to Postgres: calls are slower, and some are refused.",
    runbook: "deploy/runbook.md#the-pool-is-saturated",
  },
  sweep_behind: {
    title: "Sweep behind",
    meaning: "Records stay longer than their retention: the database grows. No call is affected.",
    runbook: "deploy/runbook.md#the-sweep-is-behind",
  },
  clock_skewed: {
    title: "Clock wrong",
    meaning: "The machine's clock differs from the database's by more than 2 s.",
    runbook: "deploy/runbook.md#a-machines-clock-is-wrong",
  },
  database_clock_moved: {
    title: "Database clock set",
    meaning: "The database's clock was set. Leases end early or late; retention follows the previous clock.",
    runbook: "deploy/runbook.md#the-databases-clock-was-set",
  },
  shards_unreachable: {
    title: "Shards unreachable",
    meaning: "A node of Citus does not answer. Calls for the keys that it holds are refused until it does.",
    runbook: "deploy/runbook.md#shards-are-unreachable",
  },
};

/** Returns what a degraded state means. A state of a later version is named as it is. */
export function degradedWords(state: string): DegradedWords {
  return (
    DEGRADED[state] ?? {
      title: state,
      meaning:
        "This version of the console does not know the state. The answers of the replica stay correct.",
      runbook: "deploy/runbook.md",
    }
  );
}

/** A degraded state, and the replicas that have it. */
export interface DegradedState extends DegradedWords {
  readonly state: string;
  readonly replicaIds: readonly string[];
}

/** The part of a replica that says whether it is degraded. */
type Degradable = Pick<Replica, "id" | "degraded">;

/** Returns every degraded state of some replicas, by its name. A replica that is given twice is counted once. */
export function degradedStates(replicas: readonly Degradable[]): readonly DegradedState[] {
  const states = [...new Set(replicas.flatMap(({ degraded }) => degraded))].sort();
  return states.map((state) => ({
    ...degradedWords(state),
    state,
    replicaIds: [...new Set(replicas.filter(({ degraded }) => degraded.includes(state)).map(({ id }) => id))],
  }));
}
