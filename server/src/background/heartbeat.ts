import { hostname } from "node:os";
import type { CommitWatch } from "../database/commit-watch.ts";
import { raiseTokenFloor } from "../database/installation.ts";
import type { Pool } from "../database/pool.ts";
import { type Beat, type Beaten, beatReplicaRow, removeReplicaRow } from "../database/replicas.ts";
import type { DatabaseClockWatch } from "../domain/database-clock.ts";
import type { TokenFloor } from "../records/token-floor.ts";
import { createRepeating, type Repeating } from "./repeat.ts";

/**
 * Connections for the heartbeat alone: a replica whose other connections are all busy still counts as live, and
 * measures the database's clock without a wait.
 */
export const HEARTBEAT_CONNECTIONS = 1;

/** Registers this replica as live in the database, and counts the live replicas. */
export type Heartbeat = ReturnType<typeof createHeartbeat>;

/** Returns the state of a replica that its heartbeat stores. */
export type ReportState = () => Pick<Beat, "degraded" | "load">;

/** Other replicas count this one as live until it has missed three heartbeats. */
const INTERVAL_MS = 3000;
const HOST = hostname();

/** Creates a heartbeat. */
export function createHeartbeat(options: {
  /** A pool of HEARTBEAT_CONNECTIONS. */
  readonly pool: Pool;
  readonly replica: { readonly id: string; readonly version: string };
  /** Receives at each heartbeat the time that the database's clock shows. */
  readonly databaseClock: DatabaseClockWatch;
  /** Is stored at each heartbeat. */
  readonly tokenFloor: Pick<TokenFloor, "current">;
  /** Is told at each heartbeat of commits that hang. */
  readonly commits: CommitWatch;
  /** Called at each heartbeat, to check whether the database was restored. */
  readonly look: (pool: Pool) => Promise<unknown>;
  readonly onFailed: (error: unknown) => void;
  /** Interval between two heartbeats; only tests change it. */
  readonly intervalMs?: number | undefined;
}) {
  const { pool, replica, look, databaseClock, tokenFloor, commits, intervalMs = INTERVAL_MS } = options;
  /** Heartbeats in a row that failed. */
  let failures = 0;
  const onFailed = (error: unknown) => {
    failures++;
    options.onFailed(error);
  };
  let beaten: Beaten | undefined;
  let beats: Repeating | undefined;
  /** Undefined until the first reading, so that replicas that start together do not confirm the clock to each other. */
  const movedMs = () => (databaseClock.expectedMs() === undefined ? undefined : databaseClock.movedMs());
  const store = async (state: ReportState) => {
    beaten = await beatReplicaRow(pool, {
      ...replica,
      ...state(),
      host: HOST,
      clockAheadMs: beaten?.clock.aheadMs,
      clockMovedMs: movedMs(),
      clockExpectedMs: databaseClock.expectedMs(),
    });
    databaseClock.see(beaten.reading, beaten.othersMovedMs, beaten.clock.aheadMs);
    commits.see(beaten.waitingCommits);
    failures = 0;
  };
  const beat = async (state: ReportState) => {
    await look(pool);
    await raiseTokenFloor(pool, tokenFloor.current());
    const storedMs = movedMs();
    await store(state);
    // A replica that starts before the next heartbeat takes the clock's course from this row.
    if (storedMs === undefined || (movedMs() === 0) !== (storedMs === 0)) await store(state);
  };
  return {
    /**
     * Resolves when the replica is registered and the live replicas are counted.
     *
     * @param state returns the state that each heartbeat stores.
     */
    async start(state: ReportState): Promise<void> {
      await beat(state);
      beats = createRepeating({ intervalMs, work: () => beat(state), onFailed });
      beats.start();
    },
    /** Unregisters the replica, so that the other replicas' shares of quotas grow at once. */
    async stop(): Promise<void> {
      await beats?.stop();
      await removeReplicaRow(pool, replica.id).catch(onFailed);
    },
    /** Returns the number of live replicas, including this one, as of a few seconds ago. */
    liveReplicas: () => beaten?.replicas ?? 1,
    /** Returns the number of heartbeats in a row that failed, for any reason. */
    failures: () => failures,
    /** Returns what the last heartbeat read; undefined before the first one. */
    lastBeaten: () => beaten,
  };
}
