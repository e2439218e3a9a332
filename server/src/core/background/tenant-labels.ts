import type { Runner } from "../store/pool.ts";
import { findLabelledTenants } from "../store/tenants/tenants.ts";
import { MAX_TENANT_LABELS, type TenantLabels } from "../telemetry/tenant-labels.ts";
import { createRepeating } from "./repeat.ts";

/** A new tenant's metrics are exported after this time. */
const INTERVAL_MS = 3000;

/** Creates the task that reads which tenants have a label of their own. `start` resolves after the first time. */
export function createTenantLabelsTask({
  pool,
  tenantLabels,
  onFailed,
}: {
  readonly pool: Runner;
  readonly tenantLabels: TenantLabels;
  readonly onFailed: (error: unknown) => void;
}) {
  const refresh = () => tenantLabels.refresh(() => findLabelledTenants(pool, MAX_TENANT_LABELS));
  const repeating = createRepeating({ intervalMs: INTERVAL_MS, work: refresh, onFailed });
  return {
    async start(): Promise<void> {
      await refresh();
      repeating.start();
    },
    stop: repeating.stop,
  };
}
