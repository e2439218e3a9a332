import type { Logger } from "pino";
import { MAX_KEY_BYTES, NAMESPACE_PATTERN } from "../domain/limits.ts";
import type { RecordId } from "../domain/record.ts";
import { CATALOGUE } from "../domain/refusal.ts";
import type { NamedRecord, OnOperation } from "./counted.ts";

export interface OperationLogOptions {
  /** Receives each operation before it is logged. */
  readonly count: OnOperation;
  readonly log: Logger;
  /** Names a record without its key. */
  readonly recordTarget: (id: RecordId) => string;
}

/** Enough to find an operation of a tenant whose calls are refused now and then. */
const MAX_REFUSALS_OF_TENANT = 5;
/** About 30 KiB of lines; bounds the memory of the counts, too. */
const MAX_REFUSALS = 100;
const WINDOW_MS = 1000;

/** The outcomes that are reasons of the catalogue. */
const REFUSALS: ReadonlySet<string> = new Set(Object.keys(CATALOGUE).map((reason) => reason.toLowerCase()));

/**
 * Returns a function that counts operations and logs them with their outcome, their request id and the record's name in audit events: at
 * `debug` each one, at `info` the refused ones, at most 5 of a tenant and 100 in all per second. The next line after some that
 * were not logged has their number, `unlogged`. Logging costs nothing for an operation that is not refused, unless `debug` is on.
 */
export function createOperationLog({ count, log, recordTarget }: OperationLogOptions): OnOperation {
  let windowEndsAtMs = 0;
  let logged = 0;
  let unlogged = 0;
  const loggedOf = new Map<number, number>();

  /** Whether one more refusal of a tenant is logged. */
  function hasRoom(tenantId: number): boolean {
    const nowMs = performance.now();
    if (nowMs >= windowEndsAtMs) {
      windowEndsAtMs = nowMs + WINDOW_MS;
      logged = 0;
      loggedOf.clear();
    }
    const ofTenant = loggedOf.get(tenantId) ?? 0;
    if (logged >= MAX_REFUSALS || ofTenant >= MAX_REFUSALS_OF_TENANT) return false;
    logged++;
    loggedOf.set(tenantId, ofTenant + 1);
    return true;
  }

  /** Returns the name of the record; undefined if the request names no possible one. */
  function targetOf({ namespace, key }: NamedRecord, tenantId: number): string | undefined {
    if (!NAMESPACE_PATTERN.test(namespace) || Buffer.byteLength(key) > MAX_KEY_BYTES) return undefined;
    return recordTarget({ tenantId, namespace, key });
  }

  return (kind, outcome, durationMs, named, call) => {
    count(kind, outcome, durationMs, named, call);
    const atDebug = log.isLevelEnabled("debug");
    if (!atDebug && !REFUSALS.has(outcome)) return;
    const { principal } = call;
    if (principal.role === "OPERATOR" || !log.isLevelEnabled("info")) return;
    const { id, name: tenant } = principal.tenant;
    if (!atDebug && !hasRoom(id)) {
      unlogged++;
      return;
    }
    const record = named && targetOf(named, id);
    const { requestId } = call;
    const line = { kind, outcome, durationMs, requestId, tenant, record, ...(unlogged > 0 && { unlogged }) };
    unlogged = 0;
    if (REFUSALS.has(outcome)) log.info(line, "operation refused");
    else log.debug(line, "operation");
  };
}
