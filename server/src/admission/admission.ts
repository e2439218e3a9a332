import { DEFAULT_DECLARED_NAMESPACES, type Quotas } from "../domain/quotas.ts";
import type { Result } from "../domain/record.ts";
import { MAX_UNFINISHED_JOBS, POLICY_SETTLES_MS } from "../domain/record-job.ts";
import type { Principal, Tenant } from "../domain/tenant.ts";
import type { WeightOf } from "../store/batching/tenant-limiter.ts";
import { createRateLimit, type Rate } from "./rate-limit.ts";
import { type QuotaCause, quotaRefusal } from "./refusals.ts";
import type { StorageTotals } from "./storage-totals.ts";

/**
 * Holds tenants to their quotas, before the database is reached. An operator has none, and nor has a tenant that none
 * were set for: its calls cost a comparison each.
 */
export interface Admission {
  /** A call begins. Whoever gets a function calls it when the call has ended. */
  startCall(principal: Principal): (() => void) | undefined;
  /**
   * Counts a call's message by its bytes, once it is decompressed: of 16 KiB begun, each but the first costs the tenant's rate
   * an operation more. Never refused: it may tell of an effect that has happened.
   */
  countMessage(principal: Principal, messageBytes: number): void;
  /**
   * A batch comes, which is refused before it is read while its tenant owes more than five seconds' operations: one that
   * settles no more than it claims never does. Counts its message otherwise.
   *
   * @throws Refusal QUOTA_RATE.
   */
  admitBatch(principal: Principal, messageBytes: number): void;
  /**
   * An operation or a call of the administration comes, within a call that was entered, that may be refused.
   *
   * @throws Refusal QUOTA_CONCURRENCY, QUOTA_RATE.
   */
  admitOperation(principal: Principal): void;
  /**
   * An operation comes that settles or prolongs a claim: it counts, and is never refused. Its effect has happened, and
   * claims that wait must not keep it from being told.
   */
  countOperation(principal: Principal): void;
  /** Whether records of the principal's tenant are counted: claims of others need not be admitted one by one. */
  countsRecords(principal: Principal): boolean;
  /**
   * A claim comes that no copy answers, and that may so add a record: room for it is reserved until it is settled. Undefined:
   * claims under way have reserved what is left.
   *
   * @throws Refusal QUOTA_RECORDS, QUOTA_BYTES.
   */
  admitRecord(principal: Principal): SettleRecord | undefined;
  /** As `admitRecord`, of a claim that hardly adds a record, and is not refused. */
  expectRecord(principal: Principal): SettleRecord;
  /**
   * A claim that `admitRecord` had no room for would add a record.
   *
   * @throws Refusal QUOTA_RECORDS.
   */
  refuseRecord(principal: Principal): void;
  /**
   * A namespace is to be declared, by a tenant that has declared so many.
   *
   * @throws Refusal QUOTA_NAMESPACES.
   */
  admitNamespace(tenant: LimitedTenant, declared: number): void;
  /**
   * A record job is to be made, for a tenant of which so many are unfinished.
   *
   * @throws Refusal QUOTA_RECORD_JOBS; also in a dry run, because it is no quota of the tenant's.
   */
  admitRecordJob(tenant: LimitedTenant, unfinished: number): void;
  /** A result was stored. */
  resultAdded(principal: Principal, result: Result): void;
  /** Of the tenants that have called. */
  readonly weightOf: WeightOf;
}

/** Ends what was admitted, once: the claim has added a record, or none, and the room for it is returned. */
export type SettleRecord = (added: boolean) => void;

/** Whose quotas they are. */
export type LimitedTenant = Pick<Tenant, "name" | "quotas">;

export interface AdmissionOptions {
  readonly totals: StorageTotals;
  /** Among how many a tenant's rate is shared. */
  readonly liveReplicas: () => number;
  /** Told of every refusal, and, of a tenant whose quotas only count, of what would have been one. */
  readonly onRefused: (tenant: string, cause: QuotaCause, mode: "enforced" | "dry_run") => void;
}

/**
 * What a tenant's calls in progress and its rate are counted under: its administration apart from its callers, each up to
 * the quota, so that neither can lock the other out.
 */
function meterOf({ role, tenant }: Exclude<Principal, { readonly role: "OPERATOR" }>): number {
  return role === "TENANT_ADMIN" ? -tenant.id : tenant.id;
}

interface CallsInProgress {
  count: number;
  readonly leave: () => void;
}

/** What an operation's message may have for the price of one: most results and checkpoints fit. */
const BYTES_PER_OPERATION = 16 * 1024;
/** Half of what can be owed. */
const MAX_OWED_BY_BATCHES_MS = 5000;
/** About as long as a call takes. */
const CONCURRENCY_RETRY_AFTER_MS = 100;
/** Until the sweep or the next count can have changed anything. */
const STORAGE_RETRY_AFTER_MS = 15_000;

/** Until claims under way have told whether they use the room that they reserved. */
const RESERVED_RETRY_AFTER_MS = 1000;

/** Only a person makes room: an administrator deletes a namespace, or an operator raises the quota. */
const NAMESPACES_RETRY_AFTER_MS = 60_000;

function settleNothing(): void {}

/** @see Admission */
export function createAdmission({ totals, liveReplicas, onRefused }: AdmissionOptions): Admission {
  const rateLimit = createRateLimit();
  const inProgress = new Map<number, CallsInProgress>();
  /** Other than 1. */
  const weights = new Map<number, number>();

  /** Refuses, or only counts, as the tenant's quotas say. */
  function refuse(
    cause: QuotaCause,
    { name, quotas }: LimitedTenant,
    limit: number,
    retryAfterMs: number,
  ): void {
    onRefused(name, cause, quotas.dryRun ? "dry_run" : "enforced");
    if (!quotas.dryRun) throw quotaRefusal(cause, name, limit, retryAfterMs);
  }

  function noteWeight({ id, quotas }: Tenant): void {
    if (quotas.weight !== 1) weights.set(id, quotas.weight);
    else if (weights.size > 0) weights.delete(id);
  }

  function addCalls(meter: number): CallsInProgress {
    const calls: CallsInProgress = {
      count: 0,
      leave() {
        calls.count--;
        if (calls.count === 0) inProgress.delete(meter);
      },
    };
    inProgress.set(meter, calls);
    return calls;
  }

  function reserveRecord(tenantId: number): SettleRecord {
    totals.reserve(tenantId, 1);
    return (added) => {
      totals.reserve(tenantId, -1);
      if (added) totals.add({ tenantId, records: 1, storedBytes: 0 });
    };
  }

  function shareOf(operationsPerSecond: number, burst = operationsPerSecond): Rate {
    const replicas = liveReplicas();
    return { perSecond: operationsPerSecond / replicas, burst: burst / replicas };
  }

  function countMessage(principal: Principal, messageBytes: number): void {
    if (messageBytes <= BYTES_PER_OPERATION || principal.role === "OPERATOR") return;
    const { operationsPerSecond: limit, burst } = principal.tenant.quotas;
    if (limit === undefined) return;
    const more = Math.ceil(messageBytes / BYTES_PER_OPERATION) - 1;
    rateLimit.owe(meterOf(principal), shareOf(limit, burst), performance.now(), more);
  }

  return {
    countMessage,

    admitBatch(principal, messageBytes) {
      if (principal.role === "OPERATOR") return;
      const { operationsPerSecond: limit, burst } = principal.tenant.quotas;
      if (limit === undefined) return;
      const owedMs = rateLimit.owedMs(meterOf(principal), shareOf(limit, burst), performance.now());
      const retryAfterMs = owedMs - MAX_OWED_BY_BATCHES_MS;
      if (retryAfterMs > 0) refuse("rate", principal.tenant, limit, retryAfterMs);
      countMessage(principal, messageBytes);
    },

    startCall(principal) {
      if (principal.role === "OPERATOR") return undefined;
      const { tenant } = principal;
      noteWeight(tenant);
      if (tenant.quotas.concurrentCalls === undefined) return undefined;
      const meter = meterOf(principal);
      const calls = inProgress.get(meter) ?? addCalls(meter);
      calls.count++;
      return calls.leave;
    },

    admitOperation(principal) {
      if (principal.role === "OPERATOR") return;
      const meter = meterOf(principal);
      const { operationsPerSecond: limit, burst, concurrentCalls } = principal.tenant.quotas;
      if (concurrentCalls !== undefined && (inProgress.get(meter)?.count ?? 0) > concurrentCalls) {
        refuse("concurrency", principal.tenant, concurrentCalls, CONCURRENCY_RETRY_AFTER_MS);
      }
      if (limit === undefined) return;
      const retryAfterMs = rateLimit.take(meter, shareOf(limit, burst), performance.now());
      if (retryAfterMs > 0) refuse("rate", principal.tenant, limit, retryAfterMs);
    },

    countOperation(principal) {
      if (principal.role === "OPERATOR") return;
      const { operationsPerSecond: limit, burst } = principal.tenant.quotas;
      if (limit !== undefined) rateLimit.owe(meterOf(principal), shareOf(limit, burst), performance.now(), 1);
    },

    countsRecords: (principal) => principal.role !== "OPERATOR" && isCounted(principal.tenant.quotas),

    admitRecord(principal) {
      if (principal.role === "OPERATOR" || !isCounted(principal.tenant.quotas)) return settleNothing;
      const { tenant } = principal;
      const { liveRecords, storedBytes, dryRun } = tenant.quotas;
      const stored = totals.of(tenant);
      if (liveRecords !== undefined && stored.records >= liveRecords) {
        refuse("records", tenant, liveRecords, STORAGE_RETRY_AFTER_MS);
      }
      if (storedBytes !== undefined && stored.storedBytes >= storedBytes) {
        refuse("bytes", tenant, storedBytes, STORAGE_RETRY_AFTER_MS);
      }
      const isTaken =
        liveRecords !== undefined && stored.records + totals.reservedOf(tenant.id) >= liveRecords;
      if (isTaken && !dryRun) return undefined;
      return reserveRecord(tenant.id);
    },

    admitNamespace(tenant, declared) {
      const limit = tenant.quotas.declaredNamespaces ?? DEFAULT_DECLARED_NAMESPACES;
      if (declared >= limit) refuse("namespaces", tenant, limit, NAMESPACES_RETRY_AFTER_MS);
    },

    admitRecordJob({ name }, unfinished) {
      if (unfinished < MAX_UNFINISHED_JOBS) return;
      onRefused(name, "jobs", "enforced");
      throw quotaRefusal("jobs", name, MAX_UNFINISHED_JOBS, POLICY_SETTLES_MS);
    },

    expectRecord(principal) {
      if (principal.role === "OPERATOR" || !isCounted(principal.tenant.quotas)) return settleNothing;
      return reserveRecord(principal.tenant.id);
    },

    refuseRecord(principal) {
      if (principal.role === "OPERATOR") return;
      const { tenant } = principal;
      refuse("records", tenant, tenant.quotas.liveRecords ?? 0, RESERVED_RETRY_AFTER_MS);
    },

    resultAdded(principal, result) {
      if (principal.role === "OPERATOR" || !isCounted(principal.tenant.quotas)) return;
      totals.add({ tenantId: principal.tenant.id, records: 0, storedBytes: bytesOf(result) });
    },

    weightOf: (tenantId) => weights.get(tenantId) ?? 1,
  };
}

function isCounted({ liveRecords, storedBytes }: Quotas): boolean {
  return liveRecords !== undefined || storedBytes !== undefined;
}

/** As the records' table counts them. */
function bytesOf({ payload, metadata }: Result): number {
  for (const _ in metadata) return payload.byteLength + Buffer.byteLength(JSON.stringify(metadata));
  return payload.byteLength;
}
