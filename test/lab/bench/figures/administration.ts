import { createOnceward } from "@onceward/client";
import { createTenantAdmin, type TenantAdmin } from "@onceward/client/admin";
import { createApiKey, createTenant } from "../../../support/servers/tenants.ts";
import type { Figure } from "../figure.ts";
import { fillRecords } from "../fill.ts";
import { ratioOf } from "../finding.ts";
import { runSlice, type Slice, summarize } from "../load.ts";
import type { Station } from "../rig.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

/** Callers of the tenant whose latency is measured, as in P10. */
const CALLERS = 8;
/** Administrators of the other tenant; each asks for one preview after another. */
const ADMINISTRATORS = 16;
/** Where `fillRecords` puts its rows. */
const NAMESPACE = "filled";
const DAY_S = 86_400n;

/**
 * Measures P14: a tenant's latency while another's administrators preview, restamp and delete its records.
 */
export const measureAdministration: Figure = async ({ rig, options, violations, signal, pace, progress }) => {
  await using station = await rig.startStation();
  progress(`filling a table with ${options.rows} rows`);
  await fillRecords(station, { rows: options.rows, signal });
  await using administration = await openAdministration(station);
  const { apiKey } = await createTenant(station.database);
  await using client = createOnceward({ address: `http://127.0.0.1:${station.server.grpcPort}`, apiKey });
  const fresh = new FreshClaims(oncewardTarget(client.calls, station.database), violations);
  const claim = (durationMs: number) => runSlice(fresh.claim, { callers: CALLERS, durationMs }, signal);
  const sliceMs = options.quick ? 500 : 3000;

  progress(`claims beside ${ADMINISTRATORS} administrators of ${options.rows} records`);
  await claim(pace.warmUpMs);
  const slices: { readonly alone: Slice[]; readonly beside: Slice[] } = { alone: [], beside: [] };
  for (const beginJob of [administration.restamp, administration.delete]) {
    slices.alone.push(await claim(sliceMs));
    await beginJob();
    await using _ = administration.startPreviews();
    slices.beside.push(await claim(sliceMs));
  }
  await fresh.verify();
  const [alone, beside] = [summarize(slices.alone), summarize(slices.beside)];
  return [
    ratioOf(
      {
        figure: "P14",
        what: "a tenant's p99 beside administrators who preview, restamp and delete ÷ alone",
        bar: { atMost: 2 },
      },
      { "beside ms": beside.p99Ms, "alone ms": alone.p99Ms, records: options.rows },
    ),
  ];
};

/** The administration of a station's tenant. */
interface Administration extends AsyncDisposable {
  /** Begins to stamp a new retention on all of its records. */
  restamp(): Promise<void>;
  /** Begins to delete all of its records. */
  delete(): Promise<void>;
  /** Makes every administrator ask for previews until it is disposed of. */
  startPreviews(): AsyncDisposable;
}

async function openAdministration({ server, database, tenant }: Station): Promise<Administration> {
  const apiKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
  const admin = createTenantAdmin({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
  await admin.updateNamespace({ ...retention(30n), allowMissing: true });
  return {
    async restamp() {
      await admin.updateNamespace({ ...retention(20n), applyToExisting: true });
      // At once, instead of after all replicas have learned of the new policy.
      await database.query("update record_jobs set starts_at = now()");
    },
    async delete() {
      // A tenant's jobs run one after another: end the one before.
      await database.query("update record_jobs set finished_at = now()");
      await admin.deleteNamespace({ name: NAMESPACE, force: true });
      await admin.updateNamespace({ ...retention(30n), allowMissing: true });
    },
    startPreviews() {
      const stopping = new AbortController();
      const previews = Array.from({ length: ADMINISTRATORS }, () => previewUntil(admin, stopping.signal));
      return {
        async [Symbol.asyncDispose]() {
          stopping.abort();
          await Promise.all(previews);
        },
      };
    },
    async [Symbol.asyncDispose]() {
      admin.close();
    },
  };
}

function retention(days: bigint) {
  return { namespace: { name: NAMESPACE, policy: { keyRetention: { seconds: days * DAY_S } } } };
}

async function previewUntil(admin: TenantAdmin, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await admin.updateNamespace({ ...retention(10n), validateOnly: true }, { signal }).catch((error) => {
      if (!signal.aborted) throw error;
    });
  }
}
