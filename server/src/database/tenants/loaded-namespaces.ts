import { LRUCache } from "lru-cache";
import { type Deadline, Rejected } from "../../domain/operation.ts";
import { type PolicyInForce, type PolicyOverrides, resolvePolicy } from "../../domain/policy.ts";
import { type NamespacePolicies, NEVER_DECLARED, PolicyNotLoaded, type Tenant } from "../../domain/tenant.ts";
import { type Batcher, StatementBatcher } from "../../records/engine/batcher.ts";
import { createTenantLimiter } from "../../records/engine/fair-queue.ts";
import type { Runner } from "../pool.ts";
import { intArray, textArray } from "../sql-arrays.ts";
import { type FieldRow, POLICY_COLUMNS } from "./policy-columns.ts";

/** The owner of namespaces. After a restore of the database, an id and a version may both be used a second time. */
export interface NamespacesOwner {
  readonly tenantId: number;
  /** Differs for every tenant, and for the same tenant after a restore. */
  readonly identity: string;
}

/** A namespace of a tenant. */
interface Namespace {
  readonly tenantId: number;
  readonly name: string;
}

type Load = Batcher<Namespace, PolicyOverrides | undefined>;

/** One batch of calls may name this many namespaces, so at least as many are kept of a tenant; up to twice as many are. */
const KEPT_PER_TENANT = 1000;
/** For all tenants, some 30 MiB; beyond it the policies of the tenant that has the most are evicted. */
const MAX_KEPT = 200_000;
/** As many as the authenticator caches. */
const MAX_TENANTS = 20_000;
/** As many as one statement loads. */
const RELOADED_AT_ONCE = 256;
/** Statements in flight. */
const MAX_IN_FLIGHT = 2;
/** Namespaces of a tenant that are loaded at once while other tenants load, too. */
const LOAD_SHARE = 64;
const WHENEVER: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

const readPolicies = {
  name: "read_namespace_policies",
  text: `
select n.tenant_id, n.name, ${POLICY_COLUMNS.selected}
  from unnest($1::int[], $2::text[]) as i (tenant_id, name)
 cross join lateral (
       select * from namespaces own where own.tenant_id = i.tenant_id and own.name = i.name limit 1) n`,
};

/** Creates a cache of policies of tenants' namespaces, which are loaded until their tenant changes one of them. */
export function createLoadedNamespaces(runner: Runner) {
  const load = createLoad(runner);
  let size = 0;
  // Calls in progress keep using evicted policies.
  const kept = new LRUCache<number, TenantNamespaces>({
    max: MAX_TENANTS,
    dispose(own) {
      size -= own.size;
      own.onGrown = undefined;
    },
  });

  /** Evicts the policies of the tenant that has the most. */
  function evictLargest(): void {
    let most: TenantNamespaces | undefined;
    for (const each of kept.values()) if (most === undefined || each.size > most.size) most = each;
    if (most !== undefined) kept.delete(most.tenantId);
  }

  function onGrown(by: number): void {
    size += by;
    if (size > MAX_KEPT) evictLargest();
  }

  return {
    /**
     * Returns the policies of a tenant at a version of its namespaces. For a new version, recently used policies are loaded at
     * once, so that a waiting call finds its namespace's.
     */
    async of({ tenantId, identity }: NamespacesOwner, version: number): Promise<NamespacePolicies> {
      const found = kept.get(tenantId);
      const was = found?.identity === identity ? found : undefined;
      if (was?.version === version) return was;
      if (version === 0) return NEVER_DECLARED;
      const own = new TenantNamespaces({ tenantId, identity }, version, load);
      const inUse = was?.latest(RELOADED_AT_ONCE) ?? [];
      // If the load fails, the next call that needs a policy loads it and gets the error.
      if (inUse.length > 0) await own.load(inUse, WHENEVER).catch(() => {});
      kept.set(tenantId, own);
      onGrown(own.size);
      own.onGrown = onGrown;
      return own;
    },
  };
}

/** Tenants load in turn, so that no tenant waits for all loads of another. */
function createLoad(runner: Runner): Load {
  return new StatementBatcher<Namespace, PolicyOverrides | undefined>({
    nameOf,
    tenantOf: ({ tenantId }) => tenantId,
    limiter: createTenantLimiter({ weightOf: () => 1, slotsPerTenant: LOAD_SHARE }),
    rowForDuplicate: (overrides) => overrides,
    maxInFlight: MAX_IN_FLIGHT,
    async execute(namespaces) {
      const rows = await runner.run<FieldRow & { readonly tenant_id: number; readonly name: string }>(
        readPolicies,
        [intArray(namespaces.map(({ tenantId }) => tenantId)), textArray(namespaces.map(({ name }) => name))],
        namespaces.length,
      );
      const found = new Map(
        rows.map((row) => [nameOf({ tenantId: row.tenant_id, name: row.name }), POLICY_COLUMNS.parse(row)]),
      );
      return namespaces.map((namespace) => found.get(nameOf(namespace)));
    },
  });
}

function nameOf({ tenantId, name }: Namespace): string {
  return `${tenantId} ${name}`;
}

/** The fields that a namespace sets, and the policy that follows from them and from the tenant's last overrides. */
interface Entry {
  /** Undefined: it was never declared. */
  readonly overrides: PolicyOverrides | undefined;
  base: PolicyOverrides | undefined;
  policy: PolicyInForce | undefined;
}

/** The loaded policies of one tenant, in two generations: the newer one fills; when it is full, the older one is evicted. */
class TenantNamespaces implements NamespacePolicies {
  readonly tenantId: number;
  readonly identity: string;
  readonly version: number;
  /** Receives the change of `size`. */
  onGrown: ((by: number) => void) | undefined;
  readonly #load: Load;
  #newer = new Map<string, Entry>();
  #older = new Map<string, Entry>();

  constructor({ tenantId, identity }: NamespacesOwner, version: number, load: Load) {
    this.tenantId = tenantId;
    this.identity = identity;
    this.version = version;
    this.#load = load;
  }

  get size(): number {
    return this.#newer.size + this.#older.size;
  }

  isLoaded(namespace: string): boolean {
    return this.#find(namespace) !== undefined;
  }

  async load(namespaces: readonly string[], deadline: Deadline): Promise<void> {
    const asked = namespaces.map((name) => ({ tenantId: this.tenantId, name }));
    const loaded = await this.#load.submitAll(asked, deadline);
    loaded.forEach((overrides, index) => {
      if (overrides instanceof Rejected) throw overrides.error;
      this.#keep(namespaces[index] as string, { overrides, base: undefined, policy: undefined });
    });
  }

  policyOf(namespace: string, { overrides, policy }: Pick<Tenant, "overrides" | "policy">): PolicyInForce {
    const entry = this.#find(namespace);
    if (entry === undefined) throw new PolicyNotLoaded(namespace);
    if (entry.overrides === undefined) return policy;
    if (entry.policy === undefined || entry.base !== overrides) {
      entry.policy = resolvePolicy(overrides, entry.overrides);
      entry.base = overrides;
    }
    return entry.policy;
  }

  /** Returns the names of the most recently loaded or used policies. */
  latest(count: number): readonly string[] {
    return [...this.#older.keys(), ...this.#newer.keys()].slice(-count);
  }

  #find(namespace: string): Entry | undefined {
    const newer = this.#newer.get(namespace);
    if (newer !== undefined) return newer;
    const older = this.#older.get(namespace);
    if (older === undefined) return undefined;
    this.#older.delete(namespace);
    this.onGrown?.(-1);
    this.#keep(namespace, older);
    return older;
  }

  #keep(namespace: string, entry: Entry): void {
    const { size } = this;
    if (this.#newer.size >= KEPT_PER_TENANT) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(namespace, entry);
    this.onGrown?.(this.size - size);
  }
}
