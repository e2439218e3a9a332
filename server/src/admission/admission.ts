import type { Quotas } from "../domain/quotas.ts";
import type { Result } from "../domain/record.ts";
import type { Principal, Tenant } from "../domain/tenant.ts";
import type { WeightOf } from "../store/tenant-shares.ts";
import { createRateLimit, type Rate } from "./rate-limit.ts";
import { type QuotaCause, quotaRefusal } from "./refusals.ts";
import type { Totals } from "./totals.ts";

/**
 * Holds tenants to their quotas, before the database is reached. An operator has none, and nor has a tenant that none
 * were set for: its calls cost a comparison each.
 */
export interface Admission {
  /** A call begins. Whoever gets a function calls it when the call has ended. */
  enter(principal: Principal): (() => void) | undefined;
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
   * An operation comes, within a call that was entered, that may be refused.
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
  /** A result was stored. */
  resultAdded(principal: Principal, result: Result): void;
  /** Of the tenants that have called. */
  readonly weightOf: WeightOf;
}

/** Ends what was admitted, once: the claim has added a record, or none, and the room for it is returned. */
export type SettleRecord = (added: boolean) => void;

export interface AdmissionOptions {
  readonly totals: Totals;
  /** Among how many a tenant's rate is shared. */
  readonly liveReplicas: () => number;
  /** Told of every refusal, and, of a tenant whose quotas only count, of what would have been one. */
  readonly onRefused: (tenant: string, cause: QuotaCause, mode: "enforced" | "dry_run") => void;
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

function settleNothing(): void {}

/** @see Admission */
export function createAdmission({ totals, liveReplicas, onRefused }: AdmissionOptions): Admission {
  const rateLimit = createRateLimit();
  const inProgress = new Map<number, CallsInProgress>();
  /** Other than 1. */
  const weights = new Map<number, number>();

  /** Refuses, or only counts, as the tenant's quotas say. */
  function refuse(cause: QuotaCause, { name, quotas }: Tenant, limit: number, retryAfterMs: number): void {
    onRefused(name, cause, quotas.dryRun ? "dry_run" : "enforced");
    if (!quotas.dryRun) throw quotaRefusal(cause, name, limit, retryAfterMs);
  }

  function noteWeight({ id, quotas }: Tenant): void {
    if (quotas.weight !== 1) weights.set(id, quotas.weight);
    else if (weights.size > 0) weights.delete(id);
  }

  function addCalls(tenantId: number): CallsInProgress {
    const calls: CallsInProgress = {
      count: 0,
      leave() {
        calls.count--;
        if (calls.count === 0) inProgress.delete(tenantId);
      },
    };
    inProgress.set(tenantId, calls);
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
    const { id, quotas } = principal.tenant;
    const { operationsPerSecond: limit, burst } = quotas;
    if (limit === undefined) return;
    const more = Math.ceil(messageBytes / BYTES_PER_OPERATION) - 1;
    rateLimit.owe(id, shareOf(limit, burst), performance.now(), more);
  }

  return {
    countMessage,

    admitBatch(principal, messageBytes) {
      if (principal.role === "OPERATOR") return;
      const { id, quotas } = principal.tenant;
      const { operationsPerSecond: limit, burst } = quotas;
      if (limit === undefined) return;
      const owedMs = rateLimit.owedMs(id, shareOf(limit, burst), performance.now());
      const retryAfterMs = owedMs - MAX_OWED_BY_BATCHES_MS;
      if (retryAfterMs > 0) refuse("rate", principal.tenant, limit, retryAfterMs);
      countMessage(principal, messageBytes);
    },

    enter(principal) {
      if (principal.role === "OPERATOR") return undefined;
      const { tenant } = principal;
      noteWeight(tenant);
      if (tenant.quotas.concurrentCalls === undefined) return undefined;
      const calls = inProgress.get(tenant.id) ?? addCalls(tenant.id);
      calls.count++;
      return calls.leave;
    },

    admitOperation(principal) {
      if (principal.role === "OPERATOR") return;
      const { id, quotas } = principal.tenant;
      const { operationsPerSecond: limit, burst, concurrentCalls } = quotas;
      if (concurrentCalls !== undefined && (inProgress.get(id)?.count ?? 0) > concurrentCalls) {
        refuse("concurrency", principal.tenant, concurrentCalls, CONCURRENCY_RETRY_AFTER_MS);
      }
      if (limit === undefined) return;
      const retryAfterMs = rateLimit.take(id, shareOf(limit, burst), performance.now());
      if (retryAfterMs > 0) refuse("rate", principal.tenant, limit, retryAfterMs);
    },

    countOperation(principal) {
      if (principal.role === "OPERATOR") return;
      const { id, quotas } = principal.tenant;
      const { operationsPerSecond: limit, burst } = quotas;
      if (limit !== undefined) rateLimit.owe(id, shareOf(limit, burst), performance.now(), 1);
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
