import type { Runner } from "./pool.ts";

/** A replica that has said nothing for this long takes no share of any quota. */
const LIVE_FOR = "interval '10 seconds'";

/** Says that a replica lives, and forgets those that have said nothing for a minute. */
const beatReplica = {
  name: "beat_replica",
  text: `
with beaten as (
  insert into replicas as r (id, version) values ($1::uuid, $2::text)
  on conflict (id) do update set seen_at = now()
), gone as (
  delete from replicas where id <> $1::uuid and seen_at < now() - interval '1 minute'
)
select 1 + count(*)::int as live from replicas where id <> $1::uuid and seen_at > now() - ${LIVE_FOR}`,
};

/** Says that the replica lives, and answers how many do, itself included. */
export async function beatReplicaRow(
  runner: Runner,
  replica: { readonly id: string; readonly version: string },
): Promise<number> {
  const [row] = await runner.run<{ live: number }>(beatReplica, [replica.id, replica.version]);
  return row?.live ?? 1;
}

const removeReplica = { name: "remove_replica", text: "delete from replicas where id = $1::uuid" };

/** Says that a replica has gone, so that the others' shares grow at once. */
export async function removeReplicaRow(runner: Runner, id: string): Promise<void> {
  await runner.run(removeReplica, [id]);
}
