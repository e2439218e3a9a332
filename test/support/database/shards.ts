import { isCitus, type TestDatabase } from "./database.ts";

const FIND_SHARDS = `
select key, get_shard_id_for_distribution_column('records', key)::text as shard
  from (select 'key-' || n as key from generate_series(1, $1::int) n) as candidates
 order by key`;

interface Placed {
  readonly key: string;
  readonly shard: string;
}

/** Returns keys whose records lie in one shard: on Citus each shard has a queue, and statements, of its own. */
export async function keysOfOneShard(database: TestDatabase, count: number): Promise<readonly string[]> {
  if (!isCitus()) return Array.from({ length: count }, (_, index) => `key-${index}`);
  const byShard = Map.groupBy(await database.query<Placed>(FIND_SHARDS, [16 * count]), ({ shard }) => shard);
  const [most = []] = [...byShard.values()].sort((a, b) => b.length - a.length);
  if (most.length < count) throw new Error("no shard has enough of the keys");
  return most.slice(0, count).map(({ key }) => key);
}

/** Returns a key whose record lies in another shard than that of `key`; on a plain Postgres, any other key. */
export async function keyOfAnotherShard(database: TestDatabase, key: string): Promise<string> {
  if (!isCitus()) return "elsewhere";
  const [own] = await database.query<{ shard: string }>(
    "select get_shard_id_for_distribution_column('records', $1::text)::text as shard",
    [key],
  );
  const others = await database.query<Placed>(FIND_SHARDS, [64]);
  const other = others.find(({ shard }) => shard !== own?.shard);
  if (other === undefined) throw new Error("all keys are in one shard");
  return other.key;
}
