import type { Logger } from "pino";
import { hasCitus } from "../store/engine.ts";
import { type InstallationLook, markOrigin, readInstallation } from "../store/installation.ts";
import { type NewestClaims, sampleNewestClaims } from "../store/newest-tokens.ts";
import type { Connection } from "../store/pool.ts";
import { isTimedOut, isUnreachableNode } from "../store/statement-errors.ts";
import { renew } from "./installation-renewal.ts";

/**
 * Detects that the database went back in time or was replaced: that it was restored, or that a standby was
 * promoted. Tokens and ids would then be given out a second time, and what the replica has cached of keys,
 * tenants and completed records may have been lost. Unless `onceward-server after-restore` has done so, the
 * first replica that detects it renews the installation. Every replica that reads a new id drops its caches.
 */
export interface InstallationWatch {
  /**
   * Reads the installation by one statement, and renews it if necessary. Called before the first statement on
   * every connection, and at every heartbeat. Returns false if the database accepts no writes at the moment,
   * so that nothing is certain.
   *
   * @throws as Runner.run does. Then the connection must run no further statement.
   */
  look(database: Connection): Promise<boolean>;
  /**
   * Compares the sequence of fencing tokens with the records, unless the first look has: it skips that while
   * a node of Citus does not answer. Called again and again.
   *
   * @throws as Runner.run does, while a node does not answer.
   */
  lookAtRecords(database: Connection): Promise<void>;
  /** Returns the installation's id. @throws Error before it was read from a database that accepts writes. */
  id(): string;
}

export interface InstallationWatchOptions {
  readonly replicaId: string;
  readonly log: Logger;
  /** Called with the new id when it has changed. */
  readonly onChanged: (id: string) => void;
  /** Called when the installation has another id, or was renewed at the first look, which knows no earlier id. */
  readonly onDetected: () => void;
}

/**
 * Maximum renewals because the id was made in another database. A Postgres that identified itself differently
 * each time would otherwise use up tokens. A database that went back in time is always a reason.
 */
const MAX_RENEWALS = 100;
/**
 * Delay between a failed renewal and the next attempt. A renewal that is rolled back leaves the sequences
 * raised, and the sequence of tenants' ids can be raised 20,000 times.
 */
const RENEWAL_RETRY_MS = 10_000;
/**
 * If the database's clock was set back, leases and retention last longer. Synchronised clocks differ by
 * milliseconds.
 */
const CLOCK_TOLERANCE_S = 60;

/** Creates a watch that has not looked yet. */
export function createInstallationWatch(options: InstallationWatchOptions): InstallationWatch {
  const watch = new Watch(options);
  return {
    look: (database) => watch.look(database),
    lookAtRecords: (database) => watch.lookAtRecords(database),
    id: () => watch.id(),
  };
}

class Watch implements InstallationWatch {
  readonly #options: InstallationWatchOptions;
  #knownId: string | undefined;
  /** Whether the records were compared with the sequence of tokens. */
  #sampled = false;
  #highestToken = 0n;
  #renewals = 0;
  /**
   * Why the installation with this id must be renewed, after an attempt that failed. Kept until the id
   * changes: looks draw tokens, and a renewal that was rolled back leaves the sequences raised, so the next
   * look would find no contradiction.
   */
  #due: { readonly id: string; readonly why: string } | undefined;
  #attemptedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: InstallationWatchOptions) {
    this.#options = options;
  }

  async look(database: Connection): Promise<boolean> {
    // Read before this look draws a token, because other looks and claims draw tokens at the same time.
    const drawnBefore = this.#highestToken;
    const newest = this.#knownId === undefined ? await this.#sampleIfNodesAnswer(database) : undefined;
    return this.#judge(database, drawnBefore, newest);
  }

  async lookAtRecords(database: Connection): Promise<void> {
    if (this.#sampled) return;
    const drawnBefore = this.#highestToken;
    const newest = await sampleNewestClaims(database);
    if (await this.#judge(database, drawnBefore, newest)) this.#sampled = true;
  }

  /** Returns undefined if a node of Citus does not answer: a replica serves the keys of the others. */
  async #sampleIfNodesAnswer(database: Connection): Promise<NewestClaims | undefined> {
    try {
      const newest = await sampleNewestClaims(database);
      this.#sampled = true;
      return newest;
    } catch (error) {
      const isNodeDown = isUnreachableNode(error) || (isTimedOut(error) && (await hasCitus(database)));
      if (!isNodeDown) throw error;
      this.#options.log.warn(
        { err: error },
        "a node of Citus does not answer; fencing tokens are compared with the records when it does",
      );
      return undefined;
    }
  }

  async #judge(
    database: Connection,
    drawnBefore: bigint,
    newest: NewestClaims | undefined,
  ): Promise<boolean> {
    const seen = await readInstallation(database);
    if (seen === undefined) return false;
    if (newest !== undefined && newest.aheadS > CLOCK_TOLERANCE_S) {
      this.#options.log.warn(
        { aheadS: newest.aheadS },
        "the database's clock was set back: leases end later by this many seconds",
      );
    }
    const why = this.#contradiction(seen, drawnBefore, newest);
    if (why !== undefined) return this.#renewUnlessTooSoon(database, seen, why);
    if (seen.origin === "unmarked") await markOrigin(database);
    this.#adopt(seen);
    return true;
  }

  id(): string {
    if (this.#knownId === undefined)
      throw new Error("the installation is unknown: the database accepts no writes");
    return this.#knownId;
  }

  /** Looks may be answered in any order: the one that drew the highest token is the newest. */
  #adopt({ id, drawnToken }: InstallationLook): void {
    if (drawnToken < this.#highestToken) return;
    this.#highestToken = drawnToken;
    if (id === this.#knownId) return;
    const isFirst = this.#knownId === undefined;
    this.#knownId = id;
    if (isFirst) return;
    this.#options.log.warn(
      "the installation was renewed: dropping cached keys, tenants and completed records",
    );
    this.#options.onDetected();
    this.#options.onChanged(id);
  }

  /** Returns why the installation must be renewed, or undefined. */
  #contradiction(
    { id, drawnToken, origin }: InstallationLook,
    drawnBefore: bigint,
    newest: NewestClaims | undefined,
  ): string | undefined {
    if (this.#due?.id === id) return this.#due.why;
    if (drawnToken <= drawnBefore) return "the sequence of fencing tokens went back";
    if (newest !== undefined && drawnToken <= newest.token)
      return "records have higher fencing tokens than the sequence";
    if (origin !== "elsewhere" || this.#renewals >= MAX_RENEWALS) return undefined;
    return "the installation's id was made in another database";
  }

  /** @throws if the renewal fails, or the last one failed less than RENEWAL_RETRY_MS ago. */
  async #renewUnlessTooSoon(database: Connection, { id }: InstallationLook, why: string): Promise<boolean> {
    if (this.#due?.id === id) {
      const nowMs = performance.now();
      if (nowMs - this.#attemptedAtMs < RENEWAL_RETRY_MS)
        throw new Error(`the installation must be renewed, and the last attempt failed: ${why}`);
      this.#attemptedAtMs = nowMs;
    }
    try {
      return await this.#renew(database, id, why);
    } catch (error) {
      this.#due = { id, why };
      this.#attemptedAtMs = performance.now();
      throw error;
    }
  }

  async #renew(database: Connection, id: string, why: string): Promise<boolean> {
    const { token } = await sampleNewestClaims(database);
    const tokenFloor = token > this.#highestToken ? token : this.#highestToken;
    const reason = `${why}; after-restore was not run`;
    const requestId = this.#options.replicaId;
    if (await renew(database, { knownId: id, tokenFloor, actor: "onceward-server", reason, requestId })) {
      this.#renewals++;
      if (this.#knownId === undefined) this.#options.onDetected();
      this.#options.log.error({ why }, "the database was restored: renewed the installation");
    }
    const renewed = await readInstallation(database);
    if (renewed !== undefined) this.#adopt(renewed);
    return renewed !== undefined;
  }
}
