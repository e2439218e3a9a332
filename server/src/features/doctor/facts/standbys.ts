import type { Runner } from "../../../core/store/pool.ts";

/** A standby's connection. */
export interface Standby {
  /** `async`, `potential`, `sync` or `quorum`; undefined: hidden from the service's role. */
  readonly synchrony: string | undefined;
}

/** A base backup that runs has a connection, too. Its state is `backup`. */
const listStandbys = {
  name: "list_standbys",
  text: `
select sync_state
  from pg_stat_replication
 where state is distinct from 'backup'`,
};

/** Returns the standbys that are connected to this primary. Without pg_monitor, their state is hidden. */
export async function readStandbys(runner: Runner): Promise<readonly Standby[]> {
  const rows = await runner.run<{ sync_state: string | null }>(listStandbys, []);
  return rows.map(({ sync_state }) => ({ synchrony: sync_state ?? undefined }));
}
