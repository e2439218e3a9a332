import { DEFAULT_DECLARED_NAMESPACES, MAX_UNFINISHED_JOBS, type Quotas } from "../domain/quotas.ts";
import { POLICY_SETTLES_MS } from "../domain/statement-times.ts";
import type { Principal, Tenant } from "../domain/tenant.ts";
import type { Result } from "../records/record.ts";
import { resultBytes } from "../records/result-bytes.ts";
import { createRateLimit, type Rate } from "./rate-limit.ts";
import { type QuotaCause, quotaRefusal } from "./refusals.ts";
import type { StorageTotals } from "./storage-totals.ts";

/**
 * Enforces tenants' quotas, before the database is reached. Operators have no quotas, nor do tenants without
 * configured ones: their calls cost a comparison each.
 */
export type Admission = ReturnType<typeof createAdmission>;

/** Returns the reserved room, once; `added` shows whether the claim has added a record. */
export type SettleRecord = (added: boolean) => void;

/** The tenant that a quota limits. */
export type LimitedTenant = Pick<Tenant, "id" | "name" | "quotas">;

/** Receives the refusals by quotas. */
export type OnRefused = (
  tenantId: number,
  cause: QuotaCause,
  mode: "enforced" | "dry_run",
  namespace: string | undefined,
) => void;

type TenantPrincipal = Exclude<Principal, { readonly role: "OPERATOR" }>;

/**
 * Returns the id under which calls in flight and rate are counted. A tenant's administration and its callers
 * are counted separately, each up to the quota, so that neither can lock the other out.
 */
function meterOf({ role, tenant }: TenantPrincipal): number {
  return role === "TENANT_ADMIN" ? -tenant.id : tenant.id;
}

/** Message size that the price of one operation covers: most results and checkpoints fit. */
const BYTES_PER_OPERATION = 16 * 1024;
/** Half of the maximum debt. */
const MAX_OWED_BY_BATCHES_MS = 5000;
/** About the duration of a call. */
const CONCURRENCY_RETRY_AFTER_MS = 100;
/** Time in which the sweep or the next count can change the totals. */
const STORAGE_RETRY_AFTER_MS = 15_000;

/** Time in which claims in flight use or return the room that they reserved. */
const RESERVED_RETRY_AFTER_MS = 1000;

/** Only a person can make room: an administrator deletes a namespace, or an operator raises the quota. */
const NAMESPACES_RETRY_AFTER_MS = 60_000;

function settleNothing(): void {}

type Refuse = (
  cause: QuotaCause,
  tenant: LimitedTenant,
  limit: number,
  retryAfterMs: number,
  namespace?: string,
) => void;

/** Creates the admission of calls and records, within tenants' quotas. */
export function createAdmission(options: {
  readonly totals: StorageTotals;
  /** Returns the number of replicas that share a tenant's rate. */
  readonly liveReplicas: () => number;
  /**
   * Called for every refusal and, in a dry run of a tenant's quotas, for every call that would have been
   * refused. The namespace is as the call named it, unchecked; empty: none was read; undefined: the call is one of the administration.
   */
  readonly onRefused: OnRefused;
}) {
  const { totals, liveReplicas, onRefused } = options;
  /** Refuses; in a dry run, only reports. */
  const refuse: Refuse = (cause, { id, name, quotas }, limit, retryAfterMs, namespace) => {
    onRefused(id, cause, quotas.dryRun ? "dry_run" : "enforced", namespace);
    if (!quotas.dryRun) throw quotaRefusal(cause, name, limit, retryAfterMs);
  };

  return {
    ...limitCalls(liveReplicas, refuse),
    ...limitRecords(totals, refuse),

    /**
     * Admits the declaration of a namespace by a tenant that has declared `declared` namespaces.
     *
     * @throws Refusal QUOTA_NAMESPACES.
     */
    admitNamespace(tenant: LimitedTenant, declared: number): void {
      const limit = tenant.quotas.declaredNamespaces ?? DEFAULT_DECLARED_NAMESPACES;
      if (declared >= limit) refuse("namespaces", tenant, limit, NAMESPACES_RETRY_AFTER_MS);
    },

    /**
     * Admits a record job of a tenant with `unfinished` unfinished jobs.
     *
     * @throws Refusal QUOTA_RECORD_JOBS; also in a dry run, because the limit is not one of the tenant's quotas.
     */
    admitRecordJob({ id, name }: LimitedTenant, unfinished: number): void {
      if (unfinished < MAX_UNFINISHED_JOBS) return;
      onRefused(id, "jobs", "enforced", undefined);
      throw quotaRefusal("jobs", name, MAX_UNFINISHED_JOBS, POLICY_SETTLES_MS);
    },
  };
}

/** Limits calls in flight and the rate of operations. */
function limitCalls(liveReplicas: () => number, refuse: Refuse) {
  const rateLimit = createRateLimit();
  const inFlight = createCallCounts();
  /** Weights other than 1. */
  const weights = new Map<number, number>();

  function noteWeight({ id, quotas }: Tenant): void {
    if (quotas.weight !== 1) weights.set(id, quotas.weight);
    else if (weights.size > 0) weights.delete(id);
  }

  function shareOf(operationsPerSecond: number, burst = operationsPerSecond): Rate {
    const replicas = liveReplicas();
    return { perSecond: operationsPerSecond / replicas, burst: burst / replicas };
  }

  function owe(principal: TenantPrincipal, operations: number): void {
    const { operationsPerSecond: limit, burst } = principal.tenant.quotas;
    if (limit === undefined) return;
    rateLimit.owe(meterOf(principal), shareOf(limit, burst), performance.now(), operations);
  }

  /**
   * Counts a call's message by its decompressed size: every 16 KiB after the first cost the tenant's rate one
   * more operation. Never refuses, because the message may report an effect that has happened.
   */
  function countMessage(principal: Principal, messageBytes: number): void {
    if (messageBytes <= BYTES_PER_OPERATION || principal.role === "OPERATOR") return;
    owe(principal, Math.ceil(messageBytes / BYTES_PER_OPERATION) - 1);
  }

  return {
    countMessage,

    /**
     * Counts a call in flight. Returns the function that ends the count, to be called when the call has ended;
     * undefined: nothing to end.
     */
    startCall(principal: Principal): (() => void) | undefined {
      if (principal.role === "OPERATOR") return undefined;
      noteWeight(principal.tenant);
      if (principal.tenant.quotas.concurrentCalls === undefined) return undefined;
      return inFlight.start(meterOf(principal));
    },

    /**
     * Refuses a batch, before it is read, whose tenant's debt exceeds five seconds of its rate; counts the
     * batch's message otherwise. A tenant that settles no more than it claims never has such a debt.
     *
     * @throws Refusal QUOTA_RATE.
     */
    admitBatch(principal: Principal, messageBytes: number): void {
      if (principal.role === "OPERATOR") return;
      const { operationsPerSecond: limit, burst } = principal.tenant.quotas;
      if (limit === undefined) return;
      const owedMs = rateLimit.owedMs(meterOf(principal), shareOf(limit, burst), performance.now());
      const retryAfterMs = owedMs - MAX_OWED_BY_BATCHES_MS;
      if (retryAfterMs > 0) refuse("rate", principal.tenant, limit, retryAfterMs, "");
      countMessage(principal, messageBytes);
    },

    /**
     * Admits an operation or an administrative call that may be refused, within a started call. A refusal is counted for the
     * namespace, as the operation names it; undefined: an administrative call.
     *
     * @throws Refusal QUOTA_CONCURRENCY, QUOTA_RATE.
     */
    admitOperation(principal: Principal, namespace?: string): void {
      if (principal.role === "OPERATOR") return;
      const meter = meterOf(principal);
      const { operationsPerSecond: limit, burst, concurrentCalls } = principal.tenant.quotas;
      if (concurrentCalls !== undefined && inFlight.countOf(meter) > concurrentCalls) {
        refuse("concurrency", principal.tenant, concurrentCalls, CONCURRENCY_RETRY_AFTER_MS, namespace);
      }
      if (limit === undefined) return;
      const retryAfterMs = rateLimit.take(meter, shareOf(limit, burst), performance.now());
      if (retryAfterMs > 0) refuse("rate", principal.tenant, limit, retryAfterMs, namespace);
    },

    /**
     * Counts an operation that settles or extends a claim. Never refuses: the effect has happened, and waiting
     * claims must not prevent its report.
     */
    countOperation(principal: Principal): void {
      if (principal.role !== "OPERATOR") owe(principal, 1);
    },

    /** Returns a tenant's weight as of its latest call. */
    weightOf: (tenantId: number) => weights.get(tenantId) ?? 1,
  };
}

/** Counts calls in flight by meter; `start` returns the function that ends the call. */
function createCallCounts() {
  const counts = new Map<number, { calls: number; readonly end: () => void }>();

  function add(meter: number) {
    const count = {
      calls: 0,
      end() {
        count.calls--;
        if (count.calls === 0) counts.delete(meter);
      },
    };
    counts.set(meter, count);
    return count;
  }

  return {
    start(meter: number): () => void {
      const count = counts.get(meter) ?? add(meter);
      count.calls++;
      return count.end;
    },
    countOf: (meter: number) => counts.get(meter)?.calls ?? 0,
  };
}

/** Limits stored records and bytes. */
function limitRecords(totals: StorageTotals, refuse: Refuse) {
  function reserveRecord(tenantId: number): SettleRecord {
    totals.reserve(tenantId, 1);
    return (added) => {
      totals.reserve(tenantId, -1);
      if (added) totals.add({ tenantId, records: 1, storedBytes: 0 });
    };
  }

  return {
    /** Returns whether the tenant's records are counted; if not, its claims need no admission one by one. */
    countsRecords: (principal: Principal) =>
      principal.role !== "OPERATOR" && isCounted(principal.tenant.quotas),

    /**
     * Admits a claim that the replay cache did not answer, and that may add a record: reserves room for one
     * record until the returned function is called. Returns undefined if claims in flight have reserved the
     * remaining room.
     *
     * @throws Refusal QUOTA_RECORDS, QUOTA_BYTES.
     */
    admitRecord(principal: Principal, namespace?: string): SettleRecord | undefined {
      if (principal.role === "OPERATOR" || !isCounted(principal.tenant.quotas)) return settleNothing;
      const { tenant } = principal;
      const { liveRecords, storedBytes, dryRun } = tenant.quotas;
      const stored = totals.of(tenant);
      if (liveRecords !== undefined && stored.records >= liveRecords) {
        refuse("records", tenant, liveRecords, STORAGE_RETRY_AFTER_MS, namespace);
      }
      if (storedBytes !== undefined && stored.storedBytes >= storedBytes) {
        refuse("bytes", tenant, storedBytes, STORAGE_RETRY_AFTER_MS, namespace);
      }
      const isTaken =
        liveRecords !== undefined && stored.records + totals.reservedOf(tenant.id) >= liveRecords;
      if (isTaken && !dryRun) return undefined;
      return reserveRecord(tenant.id);
    },

    /** Reserves room as `admitRecord` does, for a claim that rarely adds a record; never refuses. */
    expectRecord(principal: Principal): SettleRecord {
      if (principal.role === "OPERATOR" || !isCounted(principal.tenant.quotas)) return settleNothing;
      return reserveRecord(principal.tenant.id);
    },

    /**
     * Refuses a claim that would add a record and for which `admitRecord` had no room.
     *
     * @throws Refusal QUOTA_RECORDS.
     */
    refuseRecord(principal: Principal, namespace?: string): void {
      if (principal.role === "OPERATOR") return;
      const { tenant } = principal;
      refuse("records", tenant, tenant.quotas.liveRecords ?? 0, RESERVED_RETRY_AFTER_MS, namespace);
    },

    /** Counts a stored result. */
    resultAdded(principal: Principal, result: Result): void {
      if (principal.role === "OPERATOR" || !isCounted(principal.tenant.quotas)) return;
      totals.add({ tenantId: principal.tenant.id, records: 0, storedBytes: resultBytes(result) });
    },
  };
}

function isCounted({ liveRecords, storedBytes }: Quotas): boolean {
  return liveRecords !== undefined || storedBytes !== undefined;
}
