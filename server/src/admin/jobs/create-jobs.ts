import type { CoreParts } from "../../core-parts.ts";
import { createAmbiguousCounter } from "../records/ambiguous-counter.ts";
import { createJobWorker } from "./worker.ts";

/** Changes many records in the background, and counts those that are ambiguous. */
export function createJobs(core: CoreParts) {
  const { administrationPool } = core.tasks;
  const { databaseClock, onFailed, tenantLabels } = core;
  const worker = createJobWorker({
    ...core,
    pool: administrationPool.forTask("jobs"),
    encryption: core.values,
    onFailed: onFailed("record_jobs"),
  });
  const ambiguous = createAmbiguousCounter({
    pool: administrationPool.forTask("counts"),
    databaseClock,
    tenants: () => tenantLabels.tenants(),
    onFailed: onFailed("count_ambiguous"),
  });
  return { tasks: [worker, ambiguous], ambiguousRecords: ambiguous.counts };
}
