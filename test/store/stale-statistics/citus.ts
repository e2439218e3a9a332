import type { ExplainedWork } from "./explained-work.ts";

/** Statements that run only on Citus, for which Postgres' statistics say nothing: test/citus/citus-findings.test.ts. */
export const CITUS_WORK: ExplainedWork = {
  elsewhere: [
    "find_citus",
    "read_shards",
    "find_shards_of_keys",
    "check_age",
    "check_node",
    "create_shard_guard",
    "distribute_shard_guard",
    "create_closed_mark",
    "distribute_closed_mark",
    "drop_closed_mark",
    "find_shard_guard",
    "read_citus_extension",
    "read_citus_nodes",
    "read_citus_distribution",
    "find_any_record",
    "check_citus_nodes",
    "command_citus_workers",
    "read_coordinator_clock",
    "read_node_clock",
    "distribute_records",
    "undistribute_records",
    "read_database_name",
  ],
};
