import {
  type Attempt,
  Attempt_Ending,
  type Checkpoint,
  DeclinedCall_Outcome,
  type GetKeyHistoryResponse,
  Record_State,
  type RecordMessage,
  type Result,
  Result_Kind,
} from "@onceward/client/proto";
import { keyHistoryOf, NO_HISTORY } from "#words/key-history";
import { decodeText, formatHex } from "#words/payload";
import { describeLease, leaseOf } from "#words/record-lease";
import { enumName } from "./output.ts";
import { type Layout, renderFacts, renderTable } from "./table.ts";
import { formatMoment } from "./times.ts";

/** Returns the name of a record's state, such as "completed"; "lapsed" for one in progress whose lease has ended. */
export function stateName(record: RecordMessage): string {
  return leaseOf(record, new Date()) === "lapsed" ? "lapsed" : enumName(Record_State, record.state);
}

/**
 * Returns a record's fields as text; fields that are not set are skipped.
 *
 * @param auditTarget the record's name in audit events, if it is known.
 * @param showsResult whether contents are shown, and not only their sizes: they can be personal data.
 */
export function describeRecord(
  record: RecordMessage,
  { auditTarget = "", showsResult = false } = {},
): string {
  const { checkpoint, result, resultExpired } = record;
  const facts: readonly (readonly [string, string])[] = [
    ["namespace", record.namespace],
    ["key", record.key],
    ["state", stateName(record)],
    ["meaning", describeLease(record, new Date())],
    ["attempt", `${record.attempt}`],
    ["fencing token", `${record.fencingToken}`],
    ["owner", record.owner],
    ["fingerprint", formatHex(record.fingerprint)],
    ["first claimed", formatMoment(record.firstClaimedAt)],
    ["claimed", formatMoment(record.claimedAt)],
    ["lease ends", formatMoment(record.leaseExpiresAt)],
    ["completed", formatMoment(record.completedAt)],
    ["released", formatMoment(record.releasedAt)],
    ["release reason", record.releaseReason],
    ["checkpoint", checkpoint === undefined ? "" : describeCheckpoint(checkpoint, showsResult)],
    [
      "result",
      result === undefined
        ? resultExpired
          ? "its retention has ended"
          : ""
        : describeResult(result, showsResult),
    ],
    ["result expires", formatMoment(record.resultExpiresAt)],
    ["expires", formatMoment(record.expiresAt)],
    ["audit target", auditTarget],
  ];
  return renderFacts(facts.filter(([, value]) => value !== "" && value !== "-"));
}

/** Returns a record's attempts as a table. The service says HELD of the last one also after its lease. */
export function describeAttempts(
  attempts: readonly Attempt[],
  record: RecordMessage,
  layout: Layout,
): string {
  const holds = leaseOf(record, new Date()) === "held";
  return renderTable(
    ["ATTEMPT", "OWNER", "CLAIMED", "ENDED", "HOW", "CHECKPOINT", "JOB", "REASON"],
    attempts.map(({ number, owner, claimedAt, endedAt, ending, checkpoint, reason, recordJob }) => [
      `${number}`,
      owner || "-",
      formatMoment(claimedAt),
      formatMoment(endedAt),
      ending === Attempt_Ending.HELD && !holds ? stateName(record) : enumName(Attempt_Ending, ending),
      checkpoint || "-",
      recordJob === 0n ? "-" : `${recordJob}`,
      reason || "-",
    ]),
    layout,
    [undefined, "text", undefined, undefined, undefined, "wide", "wide", "wide"],
  );
}

/** Returns what became of calls on a key that did not get its claim: the counts that are not 0, and some of the calls. */
export function describeHistory(history: GetKeyHistoryResponse, layout: Layout): string {
  const { answer, parts } = keyHistoryOf(history);
  if (answer === undefined) return `${NO_HISTORY}\n`;
  const times = [
    ["first", formatMoment(history.firstAt)],
    ["last", formatMoment(history.lastAt)],
  ] as const;
  const calls = renderTable(
    ["AT", "OUTCOME", "API KEY", "REQUEST"],
    history.calls.map(({ at, outcome, actor, requestId }) => [
      formatMoment(at),
      enumName(DeclinedCall_Outcome, outcome),
      actor,
      requestId,
    ]),
    layout,
    [undefined, undefined, "text", "wide"],
  );
  return `${answer}\n${parts.map((part) => `  ${part}\n`).join("")}${renderFacts(times)}\n${calls}`;
}

function describeResult({ kind, payload, contentType }: Result, isShown: boolean): string {
  return `${enumName(Result_Kind, kind)} ${describeBytes(payload, isShown)}${contentType && ` (${contentType})`}`;
}

function describeCheckpoint({ name, state }: Checkpoint, isShown: boolean): string {
  return state.byteLength === 0 ? name : `${name} ${describeBytes(state, isShown)}`;
}

/** Returns bytes that are shown as text if they are one, else their number; `--json` prints other bytes. */
function describeBytes(bytes: Uint8Array, isShown: boolean): string {
  if (bytes.byteLength === 0) return "empty";
  if (!isShown) return `${bytes.byteLength} bytes, shown with --result`;
  return decodeText(bytes) ?? `${bytes.byteLength} bytes`;
}
