import type { Logger } from "pino";
import { type InstallationLook, markOrigin, readInstallation } from "../store/installation.ts";
import { type NewestClaims, sampleNewestClaims } from "../store/newest-tokens.ts";
import type { Connection } from "../store/pool.ts";
import { renew } from "./installation-renewal.ts";

/**
 * Notices that the database went back in time or is another one: that it was restored, or that a standby was promoted. Tokens
 * and ids would then be given out a second time, and what the replica knows of keys, tenants and completed records may be of
 * a time that never was. Unless `onceward-server after-restore` has done so, the first replica that notices renews the
 * installation; every replica that sees another id drops what it knows.
 */
export interface InstallationWatch {
  /**
   * Looks, by one statement, and renews the installation if it has to be. Called before the first statement on every
   * connection, and at every heartbeat. False: the database takes no writes at the moment, and nothing is known.
   *
   * @throws as Runner.run: no statement should follow.
   */
  look(database: Connection): Promise<boolean>;
  /** The installation's id. @throws Error before the first look at a database that takes writes. */
  id(): string;
}

export interface InstallationWatchOptions {
  readonly replicaId: string;
  readonly log: Logger;
  /** The installation has another id. */
  readonly onChanged: (id: string) => void;
}

/**
 * A Postgres that says something else of itself at each look would use tokens up: after so many renewals, only its going back
 * in time counts.
 */
const MAX_RENEWALS = 100;
/**
 * From a renewal that failed to the next attempt. One that is rolled back leaves the sequences raised, and the one of tenants'
 * ids can be raised 20,000 times.
 */
const RENEWAL_RETRY_MS = 10_000;
/** A clock that was set back makes leases and retention longer; synchronised ones differ by milliseconds. */
const CLOCK_TOLERANCE_S = 60;

/** @see InstallationWatch */
export function createInstallationWatch({
  replicaId,
  log,
  onChanged,
}: InstallationWatchOptions): InstallationWatch {
  let knownId: string | undefined;
  let highestToken = 0n;
  let renewals = 0;
  /**
   * Why the installation with this id has to be renewed, after an attempt that failed. Kept until its id is another one: looks
   * draw tokens, and what is rolled back leaves the sequences raised, so that the next look alone would find nothing wrong.
   */
  let due: { readonly id: string; readonly why: string } | undefined;
  let attemptedAtMs = Number.NEGATIVE_INFINITY;

  /** The look that drew the highest token is the newest one, in whatever order looks are answered. */
  function adopt({ id, drawnToken }: InstallationLook): void {
    if (drawnToken < highestToken) return;
    highestToken = drawnToken;
    if (id === knownId) return;
    const isFirst = knownId === undefined;
    knownId = id;
    if (isFirst) return;
    log.warn(
      "the installation was renewed: what was known of keys, tenants and completed records is dropped",
    );
    onChanged(id);
  }

  /** @throws if the renewal fails, or one failed less than RENEWAL_RETRY_MS ago. */
  async function makeRight(database: Connection, { id }: InstallationLook, why: string): Promise<boolean> {
    if (due?.id === id) {
      const nowMs = performance.now();
      if (nowMs - attemptedAtMs < RENEWAL_RETRY_MS)
        throw new Error(`the installation has to be renewed, and the last attempt failed: ${why}`);
      attemptedAtMs = nowMs;
    }
    try {
      return await attemptRenewal(database, id, why);
    } catch (error) {
      due = { id, why };
      attemptedAtMs = performance.now();
      throw error;
    }
  }

  async function attemptRenewal(database: Connection, id: string, why: string): Promise<boolean> {
    const { token } = await sampleNewestClaims(database);
    const tokenFloor = token > highestToken ? token : highestToken;
    const reason = `${why}; after-restore was not run`;
    const renewal = { knownId: id, tokenFloor, actor: "onceward-server", reason, requestId: replicaId };
    if (await renew(database, renewal)) {
      renewals++;
      log.error({ why }, "the database was restored: renewed the installation");
    }
    const renewed = await readInstallation(database);
    if (renewed !== undefined) adopt(renewed);
    return renewed !== undefined;
  }

  /** Why the installation has to be renewed; undefined: it need not be. */
  function contradiction(
    { id, drawnToken, origin }: InstallationLook,
    drawnBefore: bigint,
    newest: NewestClaims | undefined,
  ): string | undefined {
    if (due?.id === id) return due.why;
    if (drawnToken <= drawnBefore) return "the sequence of fencing tokens went back";
    if (newest !== undefined && drawnToken <= newest.token)
      return "records have higher fencing tokens than the sequence";
    if (origin !== "elsewhere" || renewals >= MAX_RENEWALS) return undefined;
    return "the installation's id was made in another database";
  }

  async function look(database: Connection): Promise<boolean> {
    // Read before this look draws: meanwhile others draw, and claim.
    const drawnBefore = highestToken;
    const newest = knownId === undefined ? await sampleNewestClaims(database) : undefined;
    const seen = await readInstallation(database);
    if (seen === undefined) return false;
    if (newest !== undefined && newest.aheadS > CLOCK_TOLERANCE_S)
      log.warn({ aheadS: newest.aheadS }, "the database's clock was set back: leases end that much later");
    const why = contradiction(seen, drawnBefore, newest);
    if (why !== undefined) return makeRight(database, seen, why);
    if (seen.origin === "unmarked") await markOrigin(database);
    adopt(seen);
    return true;
  }

  return {
    look,
    id() {
      if (knownId === undefined)
        throw new Error("the installation is not known: the database takes no writes");
      return knownId;
    },
  };
}
