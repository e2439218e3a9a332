import type { Runner } from "../../../core/store/pool.ts";
import type { Check } from "../check.ts";
import type { Observation } from "../findings.ts";
import { readPostgresSettings } from "./settings.ts";

/** A standby's connection. */
interface Standby {
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

/** Looks at whether acknowledged changes survive a failover to a standby. */
export const standbysCheck: Check = {
  name: "standbys",
  needsPostgres: true,
  async examine({ runner }) {
    const settings = await readPostgresSettings(runner);
    // A standby has no say over its own; `database_read_only` names it.
    if (settings.in_hot_standby === "on") return [];
    return judgeStandbys({
      standbys: await readStandbys(runner),
      names: settings.synchronous_standby_names,
      commit: settings.synchronous_commit,
    });
  },
};

interface StandbyFacts {
  readonly standbys: readonly Standby[];
  /** `synchronous_standby_names`. */
  readonly names: string;
  /** `synchronous_commit`. */
  readonly commit: string;
}

/** These levels do not wait for a standby's disk. */
const UNSAFE_COMMITS = ["off", "local", "remote_write"];
const SYNCHRONOUS = ["sync", "quorum"];

/** Returns what a failover would lose. */
export function judgeStandbys({ standbys, names, commit }: StandbyFacts): readonly Observation[] {
  const count = standbys.length === 1 ? "One standby is" : `${standbys.length} standbys are`;
  if (names !== "") {
    const isHidden = standbys.some(({ synchrony }) => synchrony === undefined);
    if (!isHidden && !standbys.some(({ synchrony = "" }) => SYNCHRONOUS.includes(synchrony))) {
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
  return [
    {
      id: "standby_asynchronous",
      summary: `${count} connected, and none is synchronous: a failover loses acknowledged changes.`,
    },
  ];
}
