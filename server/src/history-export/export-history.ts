import { setTimeout as pause } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { readArguments } from "../commands/arguments.ts";
import { CommandError, type Host } from "../commands/host.ts";
import { requirePepper } from "../commands/pepper.ts";
import { describeFailure } from "../commands/process.ts";
import { requireSchema } from "../commands/schema.ts";
import { withPool } from "../commands/with-pool.ts";
import { type Config, readConfig, withCurrentUrls } from "../config/config.ts";
import { NO_KEYS, parseKeyring } from "../config/keyring.ts";
import { readInstallation } from "../database/installation.ts";
import type { Runner } from "../database/pool.ts";
import { textArray } from "../database/sql-arrays.ts";
import { NAMESPACE_PATTERN } from "../domain/limits.ts";
import { createRecordHash } from "../domain/record-target.ts";
import { createRecordEncryption } from "../encryption/record-encryption.ts";
import { type Destination, destinationOf, type Line } from "./destinations.ts";
import { type Change, eventsOf, type HistoryEvent } from "./events.ts";
import { type Gap, prepareSlot, publicationOf } from "./slot.ts";
import { exportStream, paddedLsn, StaleSlotError } from "./stream.ts";

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
  await requireSchema(config);
  // Hashes of keys depend on it.
  await requirePepper(config);
  await destination.write([], stop.signal).catch((cause) => {
    throw new CommandError("--to must be a directory that exists and can be written.", { cause });
  });
  void host.untilStopRequested().then(() => stop.abort());
  let isStale = false;
  while (!stop.signal.aborted) {
    try {
      await exportUntil(stop.signal, withCurrentUrls(config), { ...options, isStale }, destination, host);
    } catch (error) {
      if (error instanceof CommandError) throw error;
      isStale = error instanceof StaleSlotError;
      host.report(`${describeFailure(error)}\nTrying again in ${RETRY_MS / 1000} s, from what is stored.`);
      await pause(RETRY_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  }
}

async function exportUntil(
  stop: AbortSignal,
  config: Config,
  options: { tenant?: string; results: boolean; slot: string; isStale: boolean },
  destination: Destination,
  host: Host,
): Promise<void> {
  const { slot, results } = options;
  const databaseUrl = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
  await withPool(config, async (pool) => {
    const { id = "" } = (await readInstallation(pool)) ?? {};
    const only = options.tenant === undefined ? undefined : await findOnly(pool, options.tenant);
    const { linesOf, gapsOf } = createLines(pool, `/onceward/${id}/tenants`, config, only);
    const from = await prepareSlot(databaseUrl, slot, results, options.isStale, async (gap) => {
      const gaps = await gapsOf(gap);
      for (let n = 0; n < gaps.length; n += MAX_GAPS)
        await destination.write(gaps.slice(n, n + MAX_GAPS), stop);
    });
    host.print(`Exporting from ${from}.`);
    const publication = publicationOf(results);
    await exportStream({ databaseUrl, slot, publication, from, linesOf, destination, stop });
  });
}

interface Tenant {
  readonly id: number;
  readonly name: string;
}

/** The tenants that a gap is told of, unless one is asked for. */
export const listTenants = {
  name: "list_exported_tenants",
  text: "select id, name from tenants order by id",
};
/** Audit events have the name of a tenant that is deleted. */
const findTenant = {
  name: "find_exported_tenant",
  text: `
select name from tenants where id = $1::int
 union all
(select tenant from audit_events where tenant_id = $1::int order by at, id limit 1)
 limit 1`,
};
/** All that have had one of the names. */
export const findNamed = {
  name: "find_named_exported_tenants",
  text: `
select id, name from tenants where name = any($1::text[])
 union
select tenant_id, tenant from audit_events where tenant = any($1::text[]) and tenant_id is not null
 order by id`,
};

/** Returns a name that no other tenant has or had; safe in a path, as no name begins with an underscore. */
const uniqueName = ({ id, name }: Tenant) => (NAMESPACE_PATTERN.test(name) ? `${name}-${id}` : `_${id}`);

/** Returns the tenant of a name, or of a unique one. @throws CommandError unless there is or was exactly one. */
async function findOnly(runner: Runner, name: string): Promise<Tenant> {
  const names = textArray([name, name.replace(/-\d+$/, "")]);
  const tenants = await runner.run<Tenant>(findNamed, [names]);
  const found = tenants.filter((tenant) => tenant.name === name || uniqueName(tenant) === name);
  if (found[0] === undefined) throw new CommandError(`There is no tenant ${name}.`);
  if (found.length > 1)
    throw new CommandError(`--tenant must be one of ${found.map(uniqueName).join(", ")}.`);
  return found[0];
}

/** Returns functions that make lines. @param only the only tenant with lines; undefined: each has. */
function createLines(runner: Runner, source: string, config: Config, only: Tenant | undefined) {
  const keyring = parseKeyring(config.ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS;
  const hashOf = createRecordHash(config.ONCEWARD_API_KEY_PEPPER);
  const values = createRecordEncryption(keyring, () => {});
  const names = new LRUCache<number, string>({ max: MAX_NAMES });

  async function readName(id: number): Promise<string> {
    const [{ name } = { name: "" }] = await runner.run<{ name: string }>(findTenant, [id]);
    names.set(id, name);
    return name;
  }

  function lineOf(
    event: HistoryEvent,
    { id, name }: Tenant,
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
      data: { tenant: name || `_${id}`, ...data },
    };
    return {
      tenant: uniqueName({ id, name }),
      day: day.slice(0, 10),
      position: position.replaceAll("/", ""),
      text: JSON.stringify(json),
    };
  }

  return {
    async linesOf(change: Change): Promise<readonly Line[]> {
      const id = Number(change.row.tenant_id);
      const name = names.get(id) ?? (await readName(id));
      if (only !== undefined && id !== only.id) {
        if (name === only.name)
          throw new CommandError(`${name} is another tenant now: ${id}, not ${only.id}.`);
        return [];
      }
      const { lsn, time } = change.commit;
      const position = `${lsn}-${change.lsn}`;
      const tenant = { id, name };
      return eventsOf(change, hashOf, values).map((event) => lineOf(event, tenant, lsn, position, time));
    },
    async gapsOf({ lsn: from, until: time, cause }: Gap): Promise<readonly Line[]> {
      const tenants = only === undefined ? await runner.run<Tenant>(listTenants, []) : [only];
      const lsn = paddedLsn(from);
      const data = { cause, until: time };
      const event = { id: `${lsn}.gap`, type: "onceward.history.gap", time, data };
      return tenants.map((tenant) => lineOf(event, tenant, lsn, `${lsn}-gap`, time));
    },
  };
}
