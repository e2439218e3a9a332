import type { Runner } from "./pool.ts";

/**
 * Stores a replica's heartbeat, deletes replicas without one for a minute, and counts those with one in the
 * last 10 seconds: only they share quotas.
 */
const beatReplica = {
  name: "beat_replica",
  text: `
with beaten as (
  insert into replicas as r (id, version) values ($1::uuid, $2::text)
  on conflict (id) do update set seen_at = now()
), gone as (
  delete from replicas where id <> $1::uuid and seen_at < now() - interval '1 minute'
)
select 1 + count(*)::int as live from replicas where id <> $1::uuid and seen_at > now() - interval '10 seconds'`,
};

/** Stores the replica's heartbeat. Returns the number of live replicas, including this one. */
export async function beatReplicaRow(
  runner: Runner,
  replica: { readonly id: string; readonly version: string },
): Promise<number> {
  const [row] = await runner.run<{ live: number }>(beatReplica, [replica.id, replica.version]);
  return row?.live ?? 1;
}

const removeReplica = { name: "remove_replica", text: "delete from replicas where id = $1::uuid" };

/** Removes a replica, so that the other replicas' shares of quotas grow at once. */
export async function removeReplicaRow(runner: Runner, id: string): Promise<void> {
  await runner.run(removeReplica, [id]);
}
