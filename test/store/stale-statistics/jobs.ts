import { findRecordJobs } from "../../../server/src/admin/jobs/list-record-jobs.ts";
import { countUnfinishedJobsOf } from "../../../server/src/admin/jobs/record-jobs.ts";
import { previewPage, restampPage } from "../../../server/src/admin/jobs/restamp-records.ts";
import { createJobScheduler } from "../../../server/src/admin/jobs/scheduler.ts";
import { workBatch } from "../../../server/src/admin/jobs/work-batch.ts";
import { countUnfinishedRecordJobs } from "../../../server/src/admin/jobs/worker.ts";
import { mayHaveLiveRecords } from "../../../server/src/admin/namespaces/delete-namespace.ts";
import { findTenantsThatHold } from "../../../server/src/admin/records/ambiguous-counter.ts";
import { countMatching } from "../../../server/src/admin/records/count-ambiguous-records.ts";
import { findAmbiguous } from "../../../server/src/admin/records/find-ambiguous.ts";
import { findRecords } from "../../../server/src/admin/records/find-records.ts";
import { forgetPage, removePage } from "../../../server/src/admin/records/forget-records.ts";
import { nextNamespace } from "../../../server/src/admin/records/record-page.ts";
import { removeTenantBatch } from "../../../server/src/admin/tenants/remove-tenant.ts";
import { pruneRows } from "../../../server/src/database/prune.ts";
import { CROWDED_TENANT, crowdedKey } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH_ROWS, ROWS, TENANTS } from "./rows.ts";

const PAGE = { tenantId: CROWDED_TENANT, namespace: "charges", afterKey: crowdedKey(10), limit: BATCH_ROWS };

const claimedBeforeNow = () => ({ courseMs: Date.now() + 60_000, shownMs: Date.now() + 60_000 });

const RETENTION = { keyRetentionS: 60, resultRetentionS: 60, failureRetentionS: 60 };

const CHANGE = {
  was: RETENTION,
  becomes: { keyRetentionS: 600, resultRetentionS: 600, failureRetentionS: 600 },
};

const FILTER = {
  tenantId: CROWDED_TENANT,
  namespace: "charges",
  state: "ambiguous",
  keyPrefix: "key-1",
  key: "",
  claimedAfterMs: undefined,
  claimedBeforeMs: undefined,
  owner: "",
  fingerprint: undefined,
  leaseExpiredBeforeMs: undefined,
  checkpoint: "",
  recordJob: undefined,
} as const;

/** A position among the ambiguous records. */
const AMONG_AMBIGUOUS = { since: "2000-01-01 00:00:00+00", namespace: "", key: "" };

/** Statements that read ambiguous records in the order of their index. */
export const AMBIGUOUS = {
  "list ambiguous records": (pool) => findAmbiguous(pool, FILTER, AMONG_AMBIGUOUS, BATCH_ROWS),
  "count ambiguous records": (pool) => countMatching(pool, FILTER, AMONG_AMBIGUOUS),
} satisfies ExplainedWork["byKeys"];

/** Statements of jobs on records, and their queues. */
export const JOBS_WORK: ExplainedWork = {
  byKeys: {
    ...AMBIGUOUS,
    "find tenants that hold": (pool) => findTenantsThatHold(pool, TENANTS),
    "re-stamp a page": (pool) => restampPage(pool, PAGE, CHANGE, claimedBeforeNow()),
    "preview a page": (pool) => previewPage(pool, PAGE, CHANGE),
    "forget a page": (pool) => forgetPage(pool, { ...PAGE, afterKey: crowdedKey(4) }, claimedBeforeNow()),
    "remove a page": (pool) => removePage(pool, { ...PAGE, afterKey: crowdedKey(5) }),
    "find namespaces": (pool) => nextNamespace(pool, CROWDED_TENANT, ""),
    "find a live record": (pool) => mayHaveLiveRecords(pool, CROWDED_TENANT, "charges"),
    "list jobs": (pool) => findRecordJobs(pool, CROWDED_TENANT, undefined, BATCH_ROWS),
  },
  overARange: {
    "list records": (pool) => findRecords(pool, FILTER, { namespace: "charges", key: "" }, BATCH_ROWS),
    "count a tenant's unfinished jobs": (pool) => countUnfinishedJobsOf(pool, CROWDED_TENANT),
    "prune jobs": (pool) => pruneRows(pool, "record_jobs", 0, BATCH_ROWS),
    "remove a tenant's rows": (pool) =>
      pool.transaction((transaction) => removeTenantBatch(transaction, CROWDED_TENANT, 11 * ROWS, "")),
    "count jobs": (pool) => countUnfinishedRecordJobs(pool),
    "work on a job": (pool) => workBatch(pool, createJobScheduler().next(0)),
  },
  onOneRow: [
    "lock_record",
    "forget_record",
    "resolve_as_released",
    "resolve_as_completed",
    "remove_tenant",
    "raise_cache_generation",
    "insert_record_job",
    "read_record_job",
    "lock_record_job",
    "cancel_record_job",
    "lock_deleted_tenant",
  ],
};
