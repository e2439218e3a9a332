import { toJson } from "@bufbuild/protobuf";
import { Refusal } from "../domain/refusal.ts";
import { GetKeyHistoryResponseSchema } from "../gen/onceward/v1/tenant_admin_pb.ts";
import { DECLINED, type Declined } from "../key-history/declined-keys.ts";
import { historyMessage } from "../key-history/get-key-history.ts";
import type { CallRow } from "../key-history/key-histories.ts";
import { RESULT_KIND, STATE } from "../records/engine/record-row.ts";
import type { RecordValues } from "../records/engine/record-values.ts";
import type { RecordId } from "../records/record.ts";

/** The columns that leave Postgres, as the publication lists them; a result's only if results are asked for. */
export const RECORD_COLUMNS =
  "tenant_id, namespace, key, fencing_token, attempt, lease_ms, first_claimed_at, claimed_at, claim_id, owner, lease_expires_at, expires_at, state, settled_at, release_reason, result_kind, unknown_since, past_attempts";
export const RESULT_COLUMNS = "result_payload, result_content_type, result_metadata, result_key_id";
export const HISTORY_COLUMNS = `tenant_id, slot, namespace, key_hash, first_at, last_at, calls, ${DECLINED.join(", ")}`;

/** The columns that an update of another one leaves out, if they are large. */
const LARGE = ["result_payload", "result_metadata"];

/** A row, each value as Postgres writes it; undefined: it was not asked for, or is large and as it was before. */
export type ChangedRow = Readonly<Record<string, string | null | undefined>>;

/** A change of a row, as logical replication delivers it. A deleted row has its primary key only. */
export interface Change {
  readonly table: string;
  readonly kind: "insert" | "update" | "delete";
  readonly row: ChangedRow;
  /** Its position in Postgres' log. */
  readonly lsn: string;
  /** Where and when its transaction committed. */
  readonly commit: { readonly lsn: string; readonly time: string };
}

/** The parts of a CloudEvent. `data` has the names of the contract. */
export interface HistoryEvent {
  /** The same whenever the event is read, and unique among those of the tenant. */
  readonly id: string;
  readonly type: string;
  readonly time: string;
  readonly data: object;
}

/**
 * Returns the events of a change. A row tells its last event, not what a statement did: one that is written again for another
 * reason, such as a new retention, tells the same event, with the same id. Extensions of a lease tell none.
 */
export function eventsOf(
  { table, kind, row, commit }: Change,
  hashOf: (id: RecordId) => Buffer,
  values: RecordValues,
): readonly HistoryEvent[] {
  if (table !== "records") return kind === "delete" ? [] : [declinedEvent(row)];
  const { namespace, key, fencing_token: fencingToken } = row;
  const id = { tenantId: Number(row.tenant_id), namespace: text(namespace), key: text(key) };
  const keyHash = hashOf(id).toString("hex");
  const event = (name: string, data: object = {}, time = commit.time, of = fencingToken) => ({
    id: `${keyHash}.${of}.${name}`,
    type: `onceward.record.${name}`,
    time,
    data: { namespace, key, keyHash, ...data },
  });
  if (kind === "delete") return [event("deleted", {}, commit.time, commit.lsn)];
  const claimedAt = moment(row.claimed_at);
  const settledAt = moment(row.settled_at);
  const attempt = Number(row.attempt);
  const claim = { fencingToken, attempt, claimId: row.claim_id, owner: row.owner, claimedAt };
  const granted = event(
    "granted",
    {
      ...claim,
      firstClaimedAt: moment(row.first_claimed_at),
      leaseExpiresAt: moment(row.lease_expires_at),
      // The claim that it took over may have had its effect.
      outcomeUnknownSince: moment(row.unknown_since),
    },
    claimedAt,
  );
  const last = lastAttempt(row);
  const settled = { ...claim, ...resolutionOf(last, fencingToken), expiresAt: moment(row.expires_at) };
  switch (Number(row.state)) {
    case STATE.forgotten:
      // A claim of a key that is too old leaves such a row.
      return kind === "insert" ? [] : [event("forgotten")];
    case STATE.inProgress:
      // A lease that ends later was extended since by the restored holder.
      if (
        last?.ending === "given back" &&
        Date.parse(moment(row.lease_expires_at) ?? "") <= Number(last.ended)
      )
        return [event("given_back", { restored: claim }, commit.time, last.token)];
      return isAsClaimed(row) ? [granted] : [];
    case STATE.completed: {
      // A completion writes its result; what is as it was before is told already.
      if (LARGE.some((name) => name in row && row[name] === undefined)) return [];
      const result = {
        kind: row.result_kind === `${RESULT_KIND.failure}` ? "KIND_FAILURE" : "KIND_SUCCESS",
        ...resultOf(row, id, values),
      };
      const completed = event("completed", { ...settled, completedAt: settledAt, result }, settledAt);
      // A claim without a lease completes its record itself.
      return row.lease_ms === "0" ? [granted, completed] : [completed];
    }
    case STATE.released: {
      const releaseReason = text(row.release_reason);
      return [event("released", { ...settled, releasedAt: settledAt, releaseReason }, settledAt)];
    }
    default:
      throw new Error(`unknown records.state ${row.state}`);
  }
}

/** Whether the lease was not extended. Both ends are cut to milliseconds. */
function isAsClaimed({ claimed_at, lease_expires_at, lease_ms }: ChangedRow): boolean {
  const leaseMs = Date.parse(text(moment(lease_expires_at))) - Date.parse(text(moment(claimed_at)));
  return Math.abs(leaseMs - Number(lease_ms)) <= 1;
}

/** Returns the last of the past attempts: also the newest one if it was resolved, and one that was given back. */
const lastAttempt = ({ past_attempts }: ChangedRow) =>
  parsed<readonly Record<string, string>[]>(past_attempts)?.at(-1);

/** An administrator's resolution leaves the attempt that it ends among the past ones. */
function resolutionOf(last: ReturnType<typeof lastAttempt>, token: ChangedRow[string]): object {
  if (last?.ending !== "resolved" || last.token !== token) return {};
  return { resolved: { reason: last.reason, recordJob: last.job } };
}

/** Returns the stored result in plain form; nothing if it was not asked for, or is not stored. */
function resultOf(row: ChangedRow, id: RecordId, values: RecordValues): object {
  const { result_payload: payload, result_metadata: metadata = null, result_key_id: keyId } = row;
  if (typeof payload !== "string") return {};
  try {
    const { result_payload: opened, result_metadata: json } = values.openRow({
      ...{ tenant_id: id.tenantId, namespace: id.namespace, key: id.key, result_payload: bytes(payload) },
      ...{ result_metadata: metadata, result_key_id: typeof keyId === "string" ? Number(keyId) : null },
    });
    const contentType = text(row.result_content_type);
    return { payload: opened?.toString("base64"), contentType, metadata: parsed(json) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { unreadable: error.metadata.cause };
  }
}

/** What was declined of a key, as GetKeyHistory answers it: all that is kept. */
function declinedEvent(row: ChangedRow): HistoryEvent {
  const counts = Object.fromEntries(DECLINED.map((name) => [name, Number(row[name])]));
  const calls = (parsed<readonly CallRow[]>(row.calls) ?? []).map(([atMs, outcome, actor, requestId]) => ({
    atMs,
    outcome,
    actor,
    requestId,
  }));
  const [firstAtMs = 0, lastAtMs = 0] = [row.first_at, row.last_at].map((at) => Date.parse(text(moment(at))));
  const history = { counts: counts as Record<Declined, number>, calls, firstAtMs, lastAtMs };
  const keyHash = bytes(text(row.key_hash)).toString("hex");
  const json = toJson(GetKeyHistoryResponseSchema, historyMessage(history));
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return {
    id: `${keyHash}.${lastAtMs}.${total}.declined`,
    type: "onceward.calls.declined",
    time: text(moment(row.last_at)),
    data: { namespace: row.namespace, keyHash, ...(json as object) },
  };
}

const text = (value: string | null | undefined) => value ?? "";

/** Returns a time in RFC 3339, with microseconds: Postgres writes 2026-01-31 09:00:00.123456+00. */
const moment = (value: string | null | undefined) => value?.replace(" ", "T").replace(/\+00$/, "Z");

const bytes = (value: string) => Buffer.from(value.slice(2), "hex");

function parsed<Value>(value: string | null | undefined): Value | undefined {
  return value ? (JSON.parse(value) as Value) : undefined;
}
