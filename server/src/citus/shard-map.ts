import type { Runner } from "../database/pool.ts";
import { textArray } from "../database/sql-arrays.ts";
import { createTextHash } from "../domain/text-hash.ts";

/** A node of Citus that holds shards. */
export interface ShardNode {
  /** Citus' number of the node's group, which a standby that takes over keeps. */
  readonly id: number;
  readonly host: string;
  readonly port: number;
}

/** A part of the table of records: the keys whose hashes are from `minHash` to below the next shard's. */
export interface PlacedShard {
  /** Citus' number of the shard. */
  readonly id: number;
  readonly minHash: number;
  readonly node: ShardNode;
}

/** Returns whether the database is Citus; its tables of shards exist nowhere else. */
const findCitus = {
  name: "find_citus",
  text: "select to_regclass('pg_catalog.pg_dist_shard') is not null as found",
};

/** Reads the shards of `records` in the order of their hashes; no row if the table is not distributed. */
const readShards = {
  name: "read_shards",
  text: `
select s.shardid::int as id, s.shardminvalue::int as "minHash", n.groupid as "nodeId", n.nodename as host, n.nodeport as port
  from pg_dist_shard s
  join pg_dist_placement p on p.shardid = s.shardid
  join pg_dist_node n on n.groupid = p.groupid
 where s.logicalrelid = 'records'::regclass
   and n.noderole = 'primary'
 order by s.shardminvalue::int`,
};

type ShardRow = Omit<PlacedShard, "node"> & Omit<ShardNode, "id"> & { readonly nodeId: number };

/** Reads the shards of the table of records; undefined on a plain Postgres, or if the table is not distributed. */
export async function readShardMap(runner: Runner): Promise<readonly PlacedShard[] | undefined> {
  const [citus] = await runner.run<{ found: boolean }>(findCitus, []);
  if (citus?.found !== true) return undefined;
  const nodes = new Map<number, ShardNode>();
  const shards = (await runner.run<ShardRow>(readShards, [])).map(({ id, minHash, nodeId, host, port }) => {
    const node = nodes.get(nodeId) ?? { id: nodeId, host, port };
    nodes.set(nodeId, node);
    return { id, minHash, node };
  });
  return shards.length === 0 ? undefined : shards;
}

/** Citus finds the shard of a record by `hashtext(key)`. */
const hashKey = createTextHash(0n);

/** Returns the shard of a key. `shards` are in the order of their hashes. */
export function shardOf<Shard extends PlacedShard>(shards: readonly Shard[], key: string): Shard {
  const hash = hashKey(key);
  let from = 0;
  for (let to = shards.length; to - from > 1; ) {
    const middle = (from + to) >> 1;
    if ((shards[middle] as Shard).minHash <= hash) from = middle;
    else to = middle;
  }
  return shards[from] as Shard;
}

/** Asks Citus for the shards of keys. */
const findShardsOfKeys = {
  name: "find_shards_of_keys",
  text: `
select get_shard_id_for_distribution_column('records', i.key)::int as id
  from unnest($1::text[]) with ordinality as i (key, ordinal)
 order by i.ordinal`,
};

/** Keys of each length up to three blocks of the hash, with and without characters that are not ASCII. */
const SAMPLE_KEYS = Array.from({ length: 37 }, (_, length) => [
  "k".repeat(length),
  `${"ä".repeat(length)}€${length}`,
]).flat();

/** Returns whether `shardOf` finds the same shards as Citus for sample keys. */
export async function agreesWithCitus(runner: Runner, shards: readonly PlacedShard[]): Promise<boolean> {
  const rows = await runner.run<{ id: number }>(findShardsOfKeys, [textArray(SAMPLE_KEYS)]);
  return SAMPLE_KEYS.every((key, i) => shardOf(shards, key).id === rows[i]?.id);
}
