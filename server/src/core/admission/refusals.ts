import { type Reason, Refusal } from "../domain/refusal.ts";

/** The exceeded quota. */
export type QuotaCause = "rate" | "concurrency" | "records" | "bytes" | "namespaces" | "jobs";

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
    describe: (limit) => `The tenant may store ${limit} records.`,
  },
  bytes: {
    reason: "QUOTA_BYTES",
    describe: (limit) => `The tenant may store ${limit} bytes of results and checkpoints.`,
  },
  namespaces: {
    reason: "QUOTA_NAMESPACES",
    describe: (limit) => `The tenant may declare ${limit} namespaces.`,
  },
  jobs: {
    reason: "QUOTA_RECORD_JOBS",
    describe: (limit) => `The tenant may have ${limit} unfinished background changes of records.`,
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
