import type { Runner } from "../../database/pool.ts";
import type { Check, Observation } from "../findings.ts";
import { readPostgresSettings } from "./settings.ts";

/** A base backup and an export have connections, too. */
export const STANDBY_STATES = `
select sync_state
  from pg_stat_replication
 where state is distinct from 'backup'
   and pid not in (select active_pid from pg_replication_slots where slot_type = 'logical' and active)`;

const listStandbys = { name: "list_standbys", text: STANDBY_STATES };

/** Returns the states of the standbys that are connected to this primary, such as `async` or `quorum`; null without pg_monitor. */
export async function readStandbys(runner: Runner): Promise<readonly (string | null)[]> {
  const rows = await runner.run<{ sync_state: string | null }>(listStandbys, []);
  return rows.map(({ sync_state }) => sync_state);
}

/** These levels do not wait for a standby's disk. */
const UNSAFE_COMMITS = ["off", "local", "remote_write"];

/** Looks at whether acknowledged changes survive a failover to a standby. */
export const standbysCheck: Check = {
  name: "standbys",
  async examine({ runner }) {
    const settings = await readPostgresSettings(runner);
    // A standby has no say over its own; `database_read_only` names it.
    if (settings.in_hot_standby === "on") return [];
    return judgeStandbys(settings, await readStandbys(runner));
  },
};

/** Returns what is wrong with the standbys of a primary with these settings. */
export function judgeStandbys(
  {
    synchronous_standby_names: names,
    synchronous_commit: commit,
  }: { readonly synchronous_standby_names: string; readonly synchronous_commit: string },
  standbys: readonly (string | null)[],
): readonly Observation[] {
  if (names !== "") {
    if (!standbys.some((state) => state === null || state === "sync" || state === "quorum")) {
      const summary = `synchronous_standby_names is ${names}, and no such standby is connected: commits wait for it.`;
      return [{ id: "synchronous_standby_missing", summary }];
    }
    if (!UNSAFE_COMMITS.includes(commit)) return [];
    const summary = `synchronous_commit is ${commit}: a failover loses acknowledged changes in spite of synchronous_standby_names.`;
    return [{ id: "standby_asynchronous", summary }];
  }
  if (standbys.length === 0) {
    return [{ id: "standby_missing", summary: "No standby of Postgres is connected." }];
  }
  const count = standbys.length === 1 ? "One standby is" : `${standbys.length} standbys are`;
  const summary = `${count} connected, and none is synchronous: a failover loses acknowledged changes.`;
  return [{ id: "standby_asynchronous", summary }];
}
