import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../../server/src/database/migrate.ts";
import { type ChaosPostgres, startChaosPostgres } from "../../support/database/chaos-postgres.ts";
import { useSettableClock } from "../../support/database/clock.ts";
import type { OpenDatabase } from "../../support/database/database.ts";
import { socketOf } from "../../support/network/sockets.ts";
import { type Disk, mountDisk, plainDisk } from "../../support/processes/small-disk.ts";
import {
  createApiKey,
  createTenant,
  setNamespacePolicy,
  type TestTenant,
} from "../../support/servers/tenants.ts";
import type { NamespacePolicy } from "../history/operation.ts";
import { type ChaosCitus, startChaosCitus } from "./citus.ts";
import { NAMESPACES, TENANTS } from "./load/spaces.ts";
import { type ChaosRedis, startChaosRedis } from "./redis.ts";
import { type Replica, startReplica } from "./replica.ts";

/** The processes of a run: a Postgres, a Redis, replicas with proxies around them; and its tenants. */
export interface Rig extends AsyncDisposable {
  /** The one Postgres, or the coordinator of Citus. */
  readonly postgres: ChaosPostgres;
  /** Undefined: the run has one Postgres. */
  readonly citus: ChaosCitus | undefined;
  /** The disk with Postgres' data. */
  readonly disk: Disk;
  /** Undefined: no Redis is installed. */
  readonly redis: ChaosRedis | undefined;
  readonly replicas: readonly Replica[];
  /** Callers' keys by the load's names of tenants. */
  readonly apiKeys: Readonly<Record<string, string>>;
  /** Of the first tenant's administrator. */
  readonly adminKey: string;
  readonly operatorKey: string;
  /** Failures that no fault caused. */
  readonly accidents: readonly string[];
  /** The directory for journals. */
  readonly dir: string;
}

export interface RigOptions {
  readonly replicas: number;
  /** `server/src/main.ts` of another version. */
  readonly main?: string;
  /** Runs on a Citus of these binaries. */
  readonly citus?: { readonly binaries: string };
  /** The namespaces of each tenant; undefined: those of the usual load. */
  readonly namespaces?: readonly Omit<NamespacePolicy, "tenant">[];
  /** Puts the data on the machine's own disk: a small one does not hold copies of it. */
  readonly onOwnDisk?: boolean;
}

/** Clocks that are right, fast and slow, side by side, in every run. */
const CLOCK_OFFSETS_MS = [0, 600_000, -600_000];

/** Starts everything; disposing stops it and removes its files. */
export async function startRig(options: RigOptions): Promise<Rig> {
  const {
    replicas: count,
    main,
    citus: asked,
    namespaces = NAMESPACES,
    onOwnDisk = asked !== undefined,
  } = options;
  const cleanUp = new AsyncDisposableStack();
  try {
    const dir = await mkdtemp(join(tmpdir(), "ow-chaos-journals-"));
    cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
    const replicas: Replica[] = [];
    const accidents: string[] = [];
    const disk = cleanUp.use(await (onOwnDisk ? plainDisk() : mountDisk()));
    const onMoved = (url: string) => {
      for (const { toPostgres } of replicas) {
        toPostgres.setTarget(socketOf(url));
        toPostgres.cut();
      }
    };
    const citus =
      asked && (await startChaosCitus({ ...asked, parent: disk.dir, onCoordinatorMoved: onMoved }, cleanUp));
    const postgres = citus?.coordinator ?? cleanUp.use(await startChaosPostgres(disk.dir, onMoved));
    const redis = await startChaosRedis();
    if (redis !== undefined) cleanUp.use(redis);
    if (citus === undefined) {
      await migrate(postgres.url, () => {});
      // Connections of replicas that are open already would keep Postgres' own clock.
      await useSettableClock(postgres);
    }
    const keys = await createTenants(postgres, namespaces);
    for (let number = 1; number <= count; number++) {
      const replica = await startReplica({
        name: `replica-${number}`,
        databaseUrl: postgres.url,
        redisSocket: redis?.socket,
        clockOffsetMs: CLOCK_OFFSETS_MS[(number - 1) % CLOCK_OFFSETS_MS.length] ?? 0,
        onAccident: (what) => accidents.push(what),
        ...(main !== undefined && { main }),
      });
      replicas.push(cleanUp.use(replica));
    }
    return {
      postgres,
      citus,
      disk,
      redis,
      replicas,
      ...keys,
      accidents,
      dir,
      [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
    };
  } catch (error) {
    await cleanUp.disposeAsync();
    throw error;
  }
}

async function createTenants(
  postgres: ChaosPostgres,
  namespaces: readonly Omit<NamespacePolicy, "tenant">[],
): Promise<Pick<Rig, "apiKeys" | "adminKey" | "operatorKey">> {
  // The rig closes the connection itself.
  const database: OpenDatabase = { url: postgres.url, query: postgres.query, close: async () => {} };
  const made: TestTenant[] = [];
  for (const _ of TENANTS) {
    const tenant = await createTenant(database);
    made.push(tenant);
    for (const policy of namespaces) {
      await setNamespacePolicy(database, tenant, policy.namespace, {
        key_retention_s: policy.keyRetentionMs / 1000,
        result_retention_s: policy.resultRetentionMs / 1000,
        failure_retention_s: policy.failureRetentionMs / 1000,
        default_lease_ms: policy.defaultLeaseMs,
        on_lease_expiry: policy.onLeaseExpiry,
        ...(policy.reclaimWithinMs && { reclaim_within_s: policy.reclaimWithinMs / 1000 }),
        late_keys: policy.refusesLateKeys ? "REQUIRE_TIME" : "RUN",
      });
    }
  }
  const [administered] = made;
  if (administered === undefined) throw new Error("there are no tenants");
  return {
    apiKeys: Object.fromEntries(TENANTS.map((name, index) => [name, made[index]?.apiKey ?? ""])),
    adminKey: await createApiKey(database, { tenantId: administered.id, role: "TENANT_ADMIN" }),
    operatorKey: await createApiKey(database, { role: "OPERATOR" }),
  };
}
