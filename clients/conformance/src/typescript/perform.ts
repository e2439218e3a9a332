import { fingerprintOf } from "../../../typescript/src/keys/fingerprint.ts";
import { formatIdempotencyKey, parseIdempotencyKey } from "../../../typescript/src/keys/idempotency-key.ts";
import { keyTime } from "../../../typescript/src/keys/key-time.ts";
import { deriveKey, joinKey, looksLikeTimestamp } from "../../../typescript/src/keys/keys.ts";
import { leaseEndsAtMs } from "../../../typescript/src/run/lease.ts";
import { retryDelayMs } from "../../../typescript/src/run/retry.ts";
import { type HttpCase, performHttp } from "./perform-http.ts";
import { type MessageCase, performMessage } from "./perform-message.ts";
import { performRuns, type RunCase } from "./perform-runs.ts";
import { performService, type ServiceCase } from "./perform-service.ts";
import { reportError } from "./report.ts";
import { readValue } from "./values.ts";

/** The arguments of each action. */
type Action =
  | {
      readonly do: "fingerprint";
      readonly json?: string;
      readonly value?: unknown;
      readonly omit?: readonly string[];
    }
  | { readonly do: "joinKey"; readonly parts: readonly unknown[] }
  | { readonly do: "deriveKey"; readonly namespace: string; readonly key: string; readonly label: string }
  | { readonly do: "keyTime"; readonly key: string }
  | { readonly do: "looksLikeTimestamp"; readonly key: string }
  | { readonly do: "parseKeyHeader"; readonly header: string }
  | { readonly do: "formatKeyHeader"; readonly key: string }
  | { readonly do: "retryDelay"; readonly failures: number; readonly atLeastMs: number }
  | { readonly do: "leaseEnd"; readonly sentAtMs: number; readonly remainingMs: number }
  | HttpCase
  | MessageCase
  | RunCase
  | ServiceCase;

/** Performs a case's action. Returns its outcome. */
export async function perform(action: Action): Promise<unknown> {
  try {
    return await outcomeOf(action);
  } catch (error) {
    return reportError(error);
  }
}

async function outcomeOf(action: Action): Promise<unknown> {
  switch (action.do) {
    case "fingerprint": {
      const value = action.json === undefined ? readValue(action.value) : JSON.parse(action.json);
      const { omit = [] } = action;
      return { fingerprint: Buffer.from(fingerprintOf(value, { omit })).toString("hex") };
    }
    case "joinKey":
      return { key: joinKey(...(action.parts.map(readValue) as (string | number | bigint)[])) };
    case "deriveKey":
      return { key: deriveKey(action.namespace, action.key, action.label) };
    case "keyTime":
      return { createdAt: keyTime(action.key)?.toISOString() ?? null };
    case "looksLikeTimestamp":
      return { looksLikeTimestamp: looksLikeTimestamp(action.key) };
    case "parseKeyHeader":
      return { key: parseIdempotencyKey(action.header) ?? null };
    case "formatKeyHeader":
      return { header: formatIdempotencyKey(action.key) };
    case "retryDelay":
      return { delayMs: retryDelayMs(action.failures, action.atLeastMs) };
    case "leaseEnd":
      return { endsAtMs: leaseEndsAtMs(action.sentAtMs, action.remainingMs) };
    case "httpOperation":
      return await performHttp(action);
    case "message":
      return await performMessage(action);
    case "run":
      return await performRuns(action);
    case "service":
      return await performService(action);
    default:
      return action satisfies never;
  }
}
