import { type Feature, forgetKeysOf } from "../../replica/feature.ts";
import { createAmbiguousCounter } from "../records/ambiguous-counter.ts";
import { createJobWorker } from "./worker.ts";

/** Changes many records in the background, and counts those that are ambiguous. */
export const jobs: Feature = {
  compose(core, earlier) {
    const { administrationPool } = core.tasks;
    const { databaseClock, onFailed, tenantLabels } = core;
    const worker = createJobWorker({
      ...core,
      pool: administrationPool.forTask("jobs"),
      encryption: core.values,
      onFailed: onFailed("record_jobs"),
      forgetKeys: forgetKeysOf(earlier),
    });
    const ambiguous = createAmbiguousCounter({
      pool: administrationPool.forTask("counts"),
      databaseClock,
      tenants: () => tenantLabels.tenants(),
      onFailed: onFailed("count_ambiguous"),
    });
    return { tasks: [worker, ambiguous], watched: { ambiguousRecords: ambiguous.counts } };
  },
};
