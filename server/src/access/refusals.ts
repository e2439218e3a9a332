import { type Reason, Refusal } from "../domain/refusal.ts";

/** The exceeded quota. */
export type QuotaCause = "rate" | "concurrency" | "records" | "bytes" | "namespaces" | "jobs";

const STORAGE_REMEDY =
  "Records leave room when their retention ends, which a tenant admin can shorten; an operator can raise the quota.";

const QUOTAS: Readonly<
  Record<QuotaCause, { readonly reason: Reason; readonly describe: (limit: number) => string }>
> = {
  rate: {
    reason: "QUOTA_RATE",
    describe: (limit) => `The tenant may make ${limit} operations a second.`,
  },
  concurrency: {
    reason: "QUOTA_CONCURRENCY",
    describe: (limit) => `The tenant may have ${limit} calls in progress on a replica.`,
  },
  records: {
    reason: "QUOTA_RECORDS",
    describe: (limit) => `The tenant may store ${limit} records. ${STORAGE_REMEDY}`,
  },
  bytes: {
    reason: "QUOTA_BYTES",
    describe: (limit) => `The tenant may store ${limit} bytes of results and checkpoints. ${STORAGE_REMEDY}`,
  },
  namespaces: {
    reason: "QUOTA_NAMESPACES",
    describe: (limit) =>
      `The tenant may declare ${limit} namespaces. Delete one, or have an operator raise the quota.`,
  },
  jobs: {
    reason: "QUOTA_RECORD_JOBS",
    describe: (limit) =>
      `The tenant may have ${limit} unfinished background changes of records. Wait for one, or cancel it.`,
  },
};

/** Returns the refusal of a call that exceeds a tenant's quota. */
export function quotaRefusal(
  cause: QuotaCause,
  tenantName: string,
  limit: number,
  retryAfterMs: number,
): Refusal {
  const { reason, describe } = QUOTAS[cause];
  const description = describe(limit);
  /** All replicas together, or the replica that answered. */
  const scope = cause === "concurrency" ? "replica" : "service";
  return new Refusal(reason, description, {
    metadata: { scope, limit: String(limit) },
    quota: { subject: `tenant:${tenantName}`, description },
    // The wire format has whole milliseconds; rounding down would make the caller retry too early.
    retryAfterMs: Math.ceil(retryAfterMs),
  });
}
