import type { Logger } from "pino";
import {
  type Installation,
  markLoss,
  markOrigin,
  raiseTenantIds,
  readInstallation,
  renewInstallation,
  replaceId,
} from "../database/installation.ts";
import type { Connection } from "../database/pool.ts";
import { insertAuditEvents } from "../database/tenants/audit-events.ts";
import type { RecordLoss } from "../records/late-keys.ts";
import type { TokenFloor } from "../records/token-floor.ts";

export interface InstallationWatchOptions {
  readonly replicaId: string;
  readonly log: Logger;
  /** Is raised to the stored floor at each check. */
  readonly tokenFloor: TokenFloor;
  /** Is set to the stored loss of records at each check. */
  readonly recordLoss: RecordLoss;
  /** Called with the new id when it has changed. */
  readonly onChanged: (id: string) => void;
  /** Called when the installation has another id, or was renewed at the first check, which knows no earlier id. */
  readonly onDetected: () => void;
}

/**
 * Maximum renewals because the id was made in another database. A Postgres that identified itself differently
 * each time would otherwise be renewed without end. A database that went back in time is always a reason.
 */
const MAX_RENEWALS = 100;
/** Delay between a failed renewal and the next attempt: each connection looks, and an attempt writes. */
const RENEWAL_RETRY_MS = 10_000;
/**
 * If the database's clock was set back, leases and retention last longer. Synchronised clocks differ by
 * milliseconds.
 */
const CLOCK_TOLERANCE_S = 60;
/** The floor only rises, so what was committed after it is lost. A promotion or a move may have lost nothing. */
const WENT_BACK = "the floor of fencing tokens went back";
/** Ten heartbeats: no replica is live. */
const UNSERVED_S = 30;

/**
 * Detects that the database went back in time or was replaced: that it was restored, or that a standby was
 * promoted. Ids would then be given out a second time, and what the replica has cached of keys, tenants and
 * completed records may have been lost. The first replica that detects it renews the installation. Every
 * replica that reads a new id drops its caches. If a replica knows that records were lost, whichever gave the id, keys from
 * before are refused where late keys are.
 */
export class InstallationWatch {
  readonly #options: InstallationWatchOptions;
  #knownId: string | undefined;
  /** The highest floor that was read from the database. */
  #storedFloor = 0;
  #renewals = 0;
  /**
   * The last attempt to renew the installation with this id, which failed, and why it must be renewed: another replica's
   * heartbeat may raise the floor meanwhile.
   */
  #failed: { readonly id: string; readonly why: string; readonly atMs: number } | undefined;

  constructor(options: InstallationWatchOptions) {
    this.#options = options;
  }

  /**
   * Reads the installation by one statement, and renews it if necessary. Called before the first statement on
   * every connection, and at every heartbeat. Returns false if the database accepts no writes at the moment,
   * so that nothing is certain.
   *
   * @throws as Runner.run does. Then the connection must run no further statement.
   */
  readonly look = async (database: Connection): Promise<boolean> => {
    // Read before the statement, because heartbeats raise the floor at the same time.
    const floorBefore = this.#storedFloor;
    const seen = await readInstallation(database);
    if (seen === undefined) return false;
    const why = this.#contradiction(seen, floorBefore);
    if (why !== undefined) return this.#renewUnlessTooSoon(database, seen, why);
    if (seen.origin === "unmarked") await markOrigin(database);
    if (this.#knownId === undefined) return this.#start(database, seen);
    return this.#follow(database, seen);
  };

  /** Returns the installation's id. @throws Error before it was read from a database that accepts writes. */
  readonly id = (): string => {
    if (this.#knownId === undefined)
      throw new Error("the installation is unknown: the database accepts no writes");
    return this.#knownId;
  };

  /**
   * Adopts the installation at the first check. If no replica has reported for a while, it has another id afterwards,
   * because the database may have gone back meanwhile, and no replica remembers: a copy of its disk shows nothing.
   */
  async #start(database: Connection, seen: Installation): Promise<boolean> {
    const unservedS = (seen.clockUs - seen.tokenFloor) / 1e6;
    if (unservedS < -CLOCK_TOLERANCE_S)
      this.#options.log.warn(
        { aheadS: -unservedS },
        "the database's clock was set back: leases end later by this many seconds",
      );
    if (seen.tokenFloor === 0 || unservedS < UNSERVED_S) {
      this.#adopt(seen);
      return true;
    }
    await replaceId(database, seen.id);
    this.#options.log.info({ unservedS }, "no replica served the database: gave the installation another id");
    return this.#adoptNext(database);
  }

  /**
   * Adopts the installation. A new id may have been given by a replica that had not read the floor that this one has: then
   * the loss is stored first.
   */
  async #follow(database: Connection, seen: Installation): Promise<boolean> {
    const { id, floorFound = Number.POSITIVE_INFINITY } = seen;
    if (id === this.#knownId || floorFound >= this.#storedFloor) {
      this.#adopt(seen);
      return true;
    }
    await markLoss(database, this.#storedFloor);
    this.#options.log.error("the database went back: records of keys from before may be lost");
    const marked = await readInstallation(database);
    if (marked !== undefined) this.#adopt(marked);
    return marked !== undefined;
  }

  /** Looks may be answered in any order: the one with the highest floor is the newest. */
  #adopt({ id, tokenFloor, recordsLostAtMs = 0 }: Installation): void {
    this.#options.tokenFloor.raise(tokenFloor);
    if (tokenFloor < this.#storedFloor) return;
    this.#options.recordLoss.lastAtMs = recordsLostAtMs;
    this.#storedFloor = tokenFloor;
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

  async #adoptNext(database: Connection): Promise<boolean> {
    const seen = await readInstallation(database);
    return seen !== undefined && (await this.#follow(database, seen));
  }

  /** Returns why the installation must be renewed, or undefined. */
  #contradiction({ id, origin, tokenFloor }: Installation, floorBefore: number): string | undefined {
    if (this.#failed?.id === id) return this.#failed.why;
    if (tokenFloor < floorBefore) return WENT_BACK;
    if (origin !== "elsewhere" || this.#renewals >= MAX_RENEWALS) return undefined;
    return "the installation's id was made in another database";
  }

  /** @throws if the renewal fails, or the last one failed less than RENEWAL_RETRY_MS ago. */
  async #renewUnlessTooSoon(database: Connection, { id }: Installation, why: string): Promise<boolean> {
    if (this.#failed?.id === id) {
      if (performance.now() - this.#failed.atMs < RENEWAL_RETRY_MS)
        throw new Error(`the installation must be renewed, and the last attempt failed: ${why}`);
      this.#failed = { id, why, atMs: performance.now() };
    }
    try {
      return await this.#renew(database, id, why);
    } catch (error) {
      this.#failed = { id, why, atMs: performance.now() };
      throw error;
    }
  }

  async #renew(database: Connection, id: string, why: string): Promise<boolean> {
    const { tokenFloor, log, onDetected } = this.#options;
    const isRenewed = await database.transaction(async (transaction) => {
      if (!(await renewInstallation(transaction, id, tokenFloor.current()))) return false;
      // The floor may have been raised since an attempt that failed.
      await markLoss(transaction, why === WENT_BACK ? Number.MAX_SAFE_INTEGER : this.#storedFloor);
      await insertAuditEvents(transaction, [
        {
          tenant: undefined,
          actor: "onceward-server",
          action: "RenewInstallation",
          target: "installation",
          reason: why,
          requestId: this.#options.replicaId,
          calls: 1,
        },
      ]);
      await raiseTenantIds(transaction);
      return true;
    });
    if (isRenewed) {
      this.#renewals++;
      if (this.#knownId === undefined) onDetected();
      log.error({ why }, "the database was restored: renewed the installation");
    }
    return this.#adoptNext(database);
  }
}
