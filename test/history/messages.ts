import { createHash } from "node:crypto";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { OncewardError } from "../../clients/typescript/src/errors/errors.ts";
import { errorFromCall, errorFromItem } from "../../clients/typescript/src/errors/mapping.ts";
import type {
  BatchRequestItem,
  BatchResponseItem,
  ClaimResponse,
} from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import {
  type Record as KnownRecord,
  Record_State,
  type Result,
  Result_Kind,
} from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { Answer, Failure, Request, ResultName, SeenRecord } from "./operation.ts";

/** One of the five calls, under its name, whether made alone or in a batch. */
export type CallRequest = BatchRequestItem["request"];
/** Its response, or its error. */
export type CallResponse = BatchResponseItem["response"];

/** What the checker needs of a request; undefined for one that asks for nothing. */
export function describeRequest({ case: kind, value }: CallRequest): Request | undefined {
  switch (kind) {
    case "claim":
      return {
        kind,
        ...(value.fingerprint.byteLength > 0 && { fingerprint: hashOf(value.fingerprint) }),
        ...(value.claimId !== "" && { claimId: value.claimId }),
        ...(value.lease && { leaseMs: durationMs(value.lease) }),
        ...(value.wait && { waitMs: durationMs(value.wait) }),
        ...(value.retention && { retentionMs: durationMs(value.retention) }),
        ...(value.acceptAmbiguous && { acceptAmbiguous: true }),
      };
    case "complete": {
      const { fencingToken, result, retention } = value;
      const token = tokenOf(fencingToken);
      const name = result === undefined ? { hash: "none" } : nameOfResult(result);
      return { kind, token, result: name, ...(retention && { retentionMs: durationMs(retention) }) };
    }
    case "release":
      return { kind, token: tokenOf(value.fencingToken) };
    case "extendLease":
      return {
        kind,
        token: tokenOf(value.fencingToken),
        ...(value.lease && { leaseMs: durationMs(value.lease) }),
      };
    case "lookup":
      return { kind };
    case undefined:
      return undefined;
  }
}

/** What the caller was told, as the answer to a call of that name. */
export function describeResponse(asked: CallRequest["case"], { case: kind, value }: CallResponse): Answer {
  if (kind === "error") return describeError(errorFromItem(value));
  if (kind !== asked) return { kind: "malformed", problem: `a ${asked} is answered as a ${kind}` };
  switch (kind) {
    case "claim":
      return describeOutcome(value);
    case "complete":
      return { kind: "stored", alreadyCompleted: value.alreadyCompleted };
    case "lookup":
      return value.record === undefined
        ? { kind: "absent" }
        : { kind: "record", ...seenRecord(value.record) };
    default:
      return { kind: "ok" };
  }
}

function describeOutcome({ outcome }: ClaimResponse): Answer {
  switch (outcome.case) {
    case "claimed":
      return { kind: "claimed", token: tokenOf(outcome.value.fencingToken), attempt: outcome.value.attempt };
    case "completed": {
      const { result, resultExpired } = outcome.value;
      if ((result === undefined) !== resultExpired) {
        return { kind: "malformed", problem: "a replay has neither a result nor its end, or both" };
      }
      return { kind: "completed", ...(result && { hash: nameOfResult(result).hash }) };
    }
    case "inProgress":
    case "ambiguous":
      return { kind: outcome.case };
    case undefined:
      return { kind: "malformed", problem: "a claim is answered without an outcome" };
  }
}

const STATES: Readonly<Record<Record_State, SeenRecord["state"] | undefined>> = {
  [Record_State.UNSPECIFIED]: undefined,
  [Record_State.IN_PROGRESS]: "inProgress",
  [Record_State.COMPLETED]: "completed",
  [Record_State.RELEASED]: "released",
  [Record_State.AMBIGUOUS]: "ambiguous",
};

/**
 * A record as it was read.
 *
 * @throws Error for one that is in no state.
 */
export function seenRecord({ state: number, fencingToken, fingerprint, result }: KnownRecord): SeenRecord {
  const state = STATES[number];
  if (state === undefined) throw new Error(`a record is in state ${number}`);
  return {
    state,
    token: tokenOf(fencingToken),
    ...(fingerprint.byteLength > 0 && { fingerprint: hashOf(fingerprint) }),
    ...(result && { hash: nameOfResult(result).hash }),
  };
}

const UNKNOWN: ReadonlySet<Code | undefined> = new Set([
  undefined,
  Code.DeadlineExceeded,
  Code.Canceled,
  Code.Unavailable,
  Code.Internal,
  Code.Unknown,
]);

/** What a failed call tells: nothing, unless it is a refusal of the service itself, whose code says that it is definite. */
export function describeError(cause: unknown): Answer {
  const error = errorFromCall(cause);
  const { code, reason } = error;
  // A reply that did not fit any more: the call itself may have been granted.
  const isUnknown = UNKNOWN.has(code) || reason === "NO_ANSWER" || reason === "RESPONSE_TOO_LARGE";
  return isUnknown ? { kind: "unknown", reason, failure: failureOf(error) } : { kind: "refused", reason };
}

function failureOf({ code = Code.Unknown, reason, message, cause }: OncewardError): Failure {
  const isAnswer =
    reason !== "NO_ANSWER" || (cause instanceof ConnectError && cause.metadata.has("grpc-status"));
  const by = isAnswer ? "service" : hasBroken(code, cause) ? "connection" : "caller";
  return { code: Code[code], by, message };
}

/**
 * Connect has no one code for it: a connection that is reset is Aborted, one that just ends Canceled, and whatever else
 * Node has a code of its own for, such as EPIPE, Internal.
 */
function hasBroken(code: Code, cause: unknown): boolean {
  if (code === Code.Aborted || code === Code.Canceled) return true;
  const beneath = cause instanceof ConnectError ? cause.cause : cause;
  if (!(beneath instanceof Error && "code" in beneath && typeof beneath.code === "string")) return false;
  // A stream may be reset on a connection that lives on; only these two say that the connection was about to end.
  return beneath.code !== "ERR_HTTP2_STREAM_ERROR" || /REFUSED_STREAM|CANCEL/.test(beneath.message);
}

/** Names a result by all that a replay would show. */
export function nameOfResult({ kind, contentType, metadata, payload }: Result): ResultName {
  const names = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  const isFailure = kind === Result_Kind.FAILURE;
  const head = Buffer.from(JSON.stringify([kind, contentType, names]));
  return { hash: hashOf(Buffer.concat([head, payload])), ...(isFailure && { isFailure }) };
}

const MARK = /^tenant=([^;]*);/;

/** A text that shows whose it is, for payloads, checkpoints and owners. */
export function marked(tenant: string, text: string): string {
  return `tenant=${tenant};${text}`;
}

/** The tenants whose marks a response bears. */
export function marksOf({ case: kind, value }: CallResponse): string[] {
  const texts: (string | Uint8Array | undefined)[] = [];
  if (kind === "claim") {
    const { outcome } = value;
    if (outcome.case === "completed") texts.push(outcome.value.result?.payload);
    if (outcome.case === "inProgress" || outcome.case === "ambiguous") texts.push(outcome.value.owner);
    if (outcome.case === "claimed" || outcome.case === "ambiguous")
      texts.push(outcome.value.checkpoint?.state);
  }
  if (kind === "lookup")
    texts.push(value.record?.owner, value.record?.result?.payload, value.record?.checkpoint?.state);
  const marks = texts.map((text) => MARK.exec(text === undefined ? "" : Buffer.from(text).toString())?.[1]);
  return [...new Set(marks.filter((mark) => mark !== undefined))];
}

function tokenOf(token: bigint): number {
  const number = Number(token);
  if (!Number.isSafeInteger(number)) throw new Error(`no number holds the fencing token ${token}`);
  return number;
}

/** Half of a SHA-256: no two that are compared here share it. */
function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}
