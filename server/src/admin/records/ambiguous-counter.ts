import { createRepeating } from "../../background/repeat.ts";
import type { Runner } from "../../database/pool.ts";
import { intArray } from "../../database/sql-arrays.ts";
import type { DatabaseClock } from "../../domain/database-clock.ts";
import type { LabelledTenant } from "../../telemetry/tenant-labels.ts";
import { countMatching } from "./count-ambiguous-records.ts";
import type { AmbiguousCursor } from "./find-ambiguous.ts";

const findHoldingTenants = {
  name: "find_holding_tenants",
  text: `
select t.id
  from unnest($1::int[]) as i (id)
  join tenants t on t.id = i.id
 where t.on_lease_expiry = 'HOLD' or t.reclaim_within_s is not null
    or exists (select from namespaces n
                where n.tenant_id = t.id and (n.on_lease_expiry = 'HOLD' or n.reclaim_within_s is not null))
 order by t.id`,
};

const findMarkedLoss = {
  name: "find_marked_loss",
  text: "select records_lost_at from installation where records_lost_at is not null",
};

/**
 * Returns those of the tenants that can have ambiguous records: whose policy, or that of a namespace, holds expired leases; after a
 * loss (deploy/postgres/mark-loss.sql), all.
 */
export async function findTenantsThatHold(runner: Runner, ids: readonly number[]): Promise<number[]> {
  if ((await runner.run(findMarkedLoss, [])).length > 0) return [...ids];
  const rows = await runner.run<{ id: number }>(findHoldingTenants, [intArray(ids)]);
  return rows.map(({ id }) => id);
}

const INTERVAL_MS = 10_000;
const FIRST_DELAY_MS = 1000;
/** A tenant's records are counted during at most a twentieth of the time. */
const PAUSE_PER_MS = 20;

const ALL_AMBIGUOUS = { namespace: undefined, owner: "", checkpoint: "" };

/**
 * Counts the ambiguous records of the tenants that have a label of their own. Every replica counts separately: a tenant's records
 * page by page, one tenant after another.
 */
export function createAmbiguousCounter({
  pool,
  databaseClock,
  tenants,
  onFailed,
}: {
  readonly pool: Runner;
  readonly databaseClock: Pick<DatabaseClock, "latestMs">;
  /** Returns the tenants to count. */
  readonly tenants: () => readonly LabelledTenant[];
  readonly onFailed: (error: unknown) => void;
}) {
  let counts: ReadonlyMap<string, number> = new Map();
  let counted = new Map<string, number>();
  /** The tenants whose records are not all counted, each with its records up to a position. Pages are of the first tenant. */
  let queue: { tenant: LabelledTenant; records: number; behind: AmbiguousCursor | undefined }[] = [];
  let nextAtMs = 0;
  let workedMs = 0;

  async function beginRound(): Promise<void> {
    const all = tenants();
    const ids = all.map(({ id }) => id);
    const holding = new Set(await findTenantsThatHold(pool, ids));
    queue = all
      .filter(({ id }) => holding.has(id))
      .map((tenant) => ({ tenant, records: 0, behind: undefined }));
    counted = new Map();
    workedMs = 0;
  }

  /** Counts one page. Returns whether the round has more. */
  async function countPage(): Promise<boolean> {
    if (queue.length === 0) {
      if (performance.now() < nextAtMs) return false;
      await beginRound();
    }
    const [first] = queue;
    if (first !== undefined) await countNextPage(first);
    if (queue.length > 0) return true;
    counts = counted;
    nextAtMs = performance.now() + PAUSE_PER_MS * workedMs;
    return false;
  }

  async function countNextPage(current: (typeof queue)[number]): Promise<void> {
    const startedAtMs = performance.now();
    const range = { ...ALL_AMBIGUOUS, tenantId: current.tenant.id };
    const { matching, next } = await countMatching(pool, range, current.behind, databaseClock.latestMs());
    workedMs += performance.now() - startedAtMs;
    current.records += matching;
    current.behind = next;
    if (next !== undefined) return;
    counted.set(current.tenant.name, current.records);
    queue.shift();
  }

  return {
    ...createRepeating({
      intervalMs: INTERVAL_MS,
      firstDelayMs: FIRST_DELAY_MS,
      work: countPage,
      onFailed,
    }),
    /** Returns the last complete counts, by the tenant's label. A tenant that holds no lease has none. */
    counts: () => counts,
  };
}
