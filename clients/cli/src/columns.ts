import { durationMs } from "@bufbuild/protobuf/wkt";
import { type ApiKey, type AuditEvent, AuditEvent_Outcome, type Replica } from "@onceward/client/proto";
import { type Column, enumName } from "./output.ts";
import { formatMoment, Hour, Moment } from "./times.ts";

/** The columns of audit events. The resource before and after the change is in `--json`. */
export const AUDIT_COLUMNS: readonly Column<AuditEvent>[] = [
  ["AT", ({ at }) => new Moment(at)],
  ["ACTOR", ({ actor }) => actor, "text"],
  ["ACTION", ({ action }) => action],
  ["OUTCOME", outcomeOf, "text"],
  ["REASON", ({ reason }) => reason, "wide"],
  ["TARGET", ({ target }) => target, "key"],
];

/** Returns an event's outcome, such as "denied ROLE_DENIED (12 calls)". */
function outcomeOf({ outcome, denial, calls }: AuditEvent): string {
  const counted = calls > 1 ? `(${calls} calls)` : "";
  return [enumName(AuditEvent_Outcome, outcome), denial, counted].filter((part) => part !== "").join(" ");
}

/** The columns of replicas. A replica has no load before its first heartbeat. */
export const REPLICA_COLUMNS: readonly Column<Replica>[] = [
  ["REPLICA", ({ id }) => id],
  ["HOST", ({ host }) => host || "-", "text"],
  ["VERSION", ({ version }) => version],
  ["STARTED", ({ startedAt }) => new Moment(startedAt), "wide"],
  ["SEEN", ({ seenAt }) => new Moment(seenAt), "wide"],
  ["CALLS", ({ load }) => `${load?.callsInFlight ?? "-"}`, "wide"],
  ["OPERATIONS/S", ({ load }) => load?.operationsPerSecond.toFixed(1) ?? "-"],
  ["CONNECTIONS", ({ load }) => `${load?.connections ?? "-"}`, "wide"],
  ["POOL", ({ load }) => (load === undefined ? "-" : `${load.poolBusy}/${load.poolSize}`), "wide"],
  ["CLOCK", ({ clockOffset }) => (clockOffset === undefined ? "-" : `${durationMs(clockOffset)} ms`), "wide"],
  ["DEGRADED", ({ degraded }) => degraded.join(", ") || "no", "text"],
];

/** The columns of API keys, of tenants and of operators. */
export const KEY_COLUMNS = {
  id: ["KEY", ({ id }) => id],
  label: ["LABEL", ({ label }) => label || "-", "text"],
  created: ["CREATED", ({ createdAt }) => new Moment(createdAt), "wide"],
  lastUsed: ["LAST USED", ({ lastUsedAt }) => new Hour(lastUsedAt)],
  ends: ["ENDS", endOf, "text"],
} as const satisfies Readonly<Record<string, Column<ApiKey>>>;

/** Returns a key's end to the minute. */
function endOf({ revokedAt, expiresAt }: ApiKey): string {
  const end = formatMoment(revokedAt ?? expiresAt).replace(/:\d\dZ$/, "Z");
  return revokedAt === undefined ? end : `revoked ${end}`;
}
