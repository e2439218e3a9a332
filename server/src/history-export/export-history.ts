import { setTimeout as pause } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { readArguments } from "../commands/arguments.ts";
import { CommandError, type Host } from "../commands/host.ts";
import { describeFailure } from "../commands/process.ts";
import { requireSchema } from "../commands/schema.ts";
import { withPool } from "../commands/with-pool.ts";
import { type Config, readConfig, withCurrentUrls } from "../config/config.ts";
import { NO_KEYS, parseKeyring } from "../config/keyring.ts";
import { readInstallation } from "../database/installation.ts";
import type { Runner } from "../database/pool.ts";
import { NAMESPACE_PATTERN } from "../domain/limits.ts";
import { createRecordHash } from "../domain/record-target.ts";
import { createRecordEncryption } from "../encryption/record-encryption.ts";
import { type Destination, destinationOf, type Line } from "./destinations.ts";
import { type Change, eventsOf, type HistoryEvent } from "./events.ts";
import { type Gap, prepareSlot, publicationOf } from "./slot.ts";
import { exportStream, paddedLsn } from "./stream.ts";

/** Doctor finds these slots by the beginning of their names. */
const SLOT = /^onceward_[a-z0-9_]{1,46}$/;
const RETRY_MS = 5000;
/** Names of tenants in memory. */
const MAX_NAMES = 10_000;
/** Gaps that are stored together. */
const MAX_GAPS = 1000;

/**
 * `export-history --to …`: writes what happens to keys, until a stop is asked for. It reads Postgres' log, so that no call waits for
 * it. After a failure it continues with what was not stored; events may come twice, with the same ids.
 */
export async function exportHistory(host: Host): Promise<void> {
  const options = readArguments(host.args, {
    to: { type: "string", default: "" },
    tenant: { type: "string" },
    results: { type: "boolean", default: false },
    slot: { type: "string", default: "onceward_history" },
  });
  const config = readConfig(host.env);
  const destination = destinationOf(options.to, config);
  if (!SLOT.test(options.slot)) throw new CommandError(`--slot must match ${SLOT.source}.`);
  const stop = new AbortController();
  void host.untilStopRequested().then(() => stop.abort());
  await requireSchema(config);
  while (!stop.signal.aborted) {
    try {
      await exportUntil(stop.signal, withCurrentUrls(config), options, destination, host);
    } catch (error) {
      if (error instanceof CommandError) throw error;
      host.report(`${describeFailure(error)}\nTrying again in ${RETRY_MS / 1000} s, from what is stored.`);
      await pause(RETRY_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  }
}

async function exportUntil(
  stop: AbortSignal,
  config: Config,
  { tenant, results, slot }: { tenant?: string; results: boolean; slot: string },
  destination: Destination,
  host: Host,
): Promise<void> {
  const databaseUrl = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
  await withPool(config, async (pool) => {
    const { id = "" } = (await readInstallation(pool)) ?? {};
    const { linesOf, gapsOf } = createLines(pool, `/onceward/${id}/tenants`, config, tenant);
    const from = await prepareSlot(databaseUrl, slot, results, async (gap) => {
      const gaps = await gapsOf(gap);
      for (let n = 0; n < gaps.length; n += MAX_GAPS) await destination.write(gaps.slice(n, n + MAX_GAPS));
    });
    host.print(`Exporting from ${from}.`);
    const publication = publicationOf(results);
    await exportStream({ databaseUrl, slot, publication, from, linesOf, destination, stop });
  });
}

/** The tenants that have lines: the one of a name, or all. */
export const listTenants = {
  name: "list_exported_tenants",
  text: "select id, name from tenants where $1::text is null or name = $1::text order by id",
};
const findTenant = { name: "find_exported_tenant", text: "select name from tenants where id = $1::int" };

/** Returns functions that make lines. @param only the only tenant with lines; undefined: each has. */
function createLines(runner: Runner, source: string, config: Config, only: string | undefined) {
  const keyring = parseKeyring(config.ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS;
  const hashOf = createRecordHash(config.ONCEWARD_API_KEY_PEPPER);
  const values = createRecordEncryption(keyring, () => {});
  const names = new LRUCache<number, string>({ max: MAX_NAMES });

  /** A tenant that is deleted before its last changes are read has no name; no name begins with an underscore. */
  async function readName(id: number): Promise<string> {
    const [{ name } = { name: "" }] = await runner.run<{ name: string }>(findTenant, [id]);
    const safe = NAMESPACE_PATTERN.test(name) ? name : `_${id}`;
    names.set(id, safe);
    return safe;
  }

  function lineOf(
    event: HistoryEvent,
    id: number,
    tenant: string,
    lsn: string,
    position: string,
    day: string,
  ): Line {
    const { data, ...attributes } = event;
    const json = {
      specversion: "1.0",
      source: `${source}/${id}`,
      ...attributes,
      lsn,
      data: { tenant, ...data },
    };
    return {
      tenant,
      day: day.slice(0, 10),
      position: position.replaceAll("/", ""),
      text: JSON.stringify(json),
    };
  }

  return {
    async linesOf(change: Change): Promise<readonly Line[]> {
      const id = Number(change.row.tenant_id);
      const name = names.get(id) ?? (await readName(id));
      if (only !== undefined && name !== only) return [];
      const { lsn, time } = change.commit;
      const position = `${lsn}-${change.lsn}`;
      return eventsOf(change, hashOf, values).map((event) => lineOf(event, id, name, lsn, position, time));
    },
    /** @throws CommandError if there is no tenant `only`. */
    async gapsOf({ lsn: from, until: time, ...gap }: Gap): Promise<readonly Line[]> {
      const tenants = await runner.run<{ id: number; name: string }>(listTenants, [only ?? null]);
      if (only !== undefined && tenants.length === 0) throw new CommandError(`There is no tenant ${only}.`);
      const lsn = paddedLsn(from);
      const event = { id: `${lsn}.gap`, type: "onceward.history.gap", time, data: { ...gap, until: time } };
      return tenants.map(({ id, name }) => lineOf(event, id, name, lsn, `${lsn}-gap`, time));
    },
  };
}
