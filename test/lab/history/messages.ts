import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { OncewardError } from "../../../clients/typescript/src/errors/errors.ts";
import { errorFromCall, errorFromItem } from "../../../clients/typescript/src/errors/mapping.ts";
import type {
  BatchRequestItem,
  BatchResponseItem,
  ClaimResponse,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import {
  type Record as KnownRecord,
  Record_State,
  type Result,
  Result_Kind,
  ResultSchema,
} from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import {
  type Answer,
  type ClaimRequest,
  type Failure,
  nowMs,
  type Request,
  type ResultName,
  type SeenRecord,
} from "./operation.ts";

/** One of the five calls, by name, alone or as an item of a batch. */
export type CallRequest = BatchRequestItem["request"];
/** A call's response or error. */
export type CallResponse = BatchResponseItem["response"];

/** The result of claims that complete their records themselves. */
const EMPTY_HASH = nameOfResult(create(ResultSchema, { kind: Result_Kind.SUCCESS })).hash;

/** Returns the parts of a request that the checker needs; undefined for an empty one. */
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
        ...(value.marksBegin && { marksBegin: true }),
        ...(value.completion && { completesWith: EMPTY_HASH }),
        ...keyTimeOf(value.key, value.keyCreatedAt && timestampMs(value.keyCreatedAt)),
      };
    case "complete": {
      const { fencingToken, result, retention } = value;
      const token = tokenOf(fencingToken);
      const name = result === undefined ? { hash: "none" } : nameOfResult(result);
      return { kind, token, result: name, ...(retention && { retentionMs: durationMs(retention) }) };
    }
    case "release":
      return { kind, token: tokenOf(value.fencingToken), ...(value.giveBack && { giveBack: true }) };
    case "extendLease":
      return {
        kind,
        token: tokenOf(value.fencingToken),
        ...(value.lease && { leaseMs: durationMs(value.lease) }),
        ...(value.begin && { begin: true }),
      };
    case "lookup":
      return { kind };
    case undefined:
      return undefined;
  }
}

/** A UUID of version 7, whose first 48 bits are milliseconds since the Unix epoch. */
const UUID7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7/;
/** The epoch of the clock of histories. */
const EPOCH_MS = Date.now() - nowMs();

/** Returns when a key was created, by its request or by the key itself. */
function keyTimeOf(key: string, requestedMs: number | undefined): Pick<ClaimRequest, "keyCreatedAtMs"> {
  const [, high, low] = UUID7.exec(key) ?? [];
  const createdMs = requestedMs ?? (high && low ? Number.parseInt(high + low, 16) : undefined);
  return createdMs === undefined ? {} : { keyCreatedAtMs: createdMs - EPOCH_MS };
}

/** Returns a response as the answer to a call of that name. */
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
        return { kind: "malformed", problem: "a replay must have either a result or result_expired" };
      }
      return { kind: "completed", ...(result && { hash: nameOfResult(result).hash }) };
    }
    case "inProgress":
    case "recorded":
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
 * Returns a record as the checker needs it.
 *
 * @throws Error for a record without a state.
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

/** Returns a failed call's answer: unknown, unless the service itself refused it with a definite code. */
export function describeError(cause: unknown): Answer {
  const error = errorFromCall(cause);
  const { code, reason } = error;
  // A call of a tenant that moves is refused before anything happens.
  if (reason === "TENANT_MOVING") return { kind: "refused", reason };
  // RESPONSE_TOO_LARGE: the call itself may have been granted.
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
 * Returns whether a connection broke. Connect has several codes for it: Aborted for a reset, Canceled for one
 * that just ends, and Internal for other errors that Node has a code for, such as EPIPE.
 */
function hasBroken(code: Code, cause: unknown): boolean {
  if (code === Code.Aborted || code === Code.Canceled) return true;
  const beneath = cause instanceof ConnectError ? cause.cause : cause;
  if (!(beneath instanceof Error && "code" in beneath && typeof beneath.code === "string")) return false;
  // A stream may be reset on a connection that stays open; only these two mean that the connection was about
  // to end.
  return beneath.code !== "ERR_HTTP2_STREAM_ERROR" || /REFUSED_STREAM|CANCEL/.test(beneath.message);
}

/** Names a result by everything that a replay shows. */
export function nameOfResult({ kind, contentType, metadata, payload }: Result): ResultName {
  const names = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  const isFailure = kind === Result_Kind.FAILURE;
  const head = Buffer.from(JSON.stringify([kind, contentType, names]));
  return { hash: hashOf(Buffer.concat([head, payload])), ...(isFailure && { isFailure }) };
}

const MARK = /^tenant=([^;]*);/;

/** Returns a text that names its tenant, for payloads, checkpoints and owners. */
export function marked(tenant: string, text: string): string {
  return `tenant=${tenant};${text}`;
}

/** Returns the tenants whose marks a response contains. */
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
  if (!Number.isSafeInteger(number)) throw new Error(`the fencing token ${token} exceeds the safe integers`);
  return number;
}

/** Returns half of a SHA-256, which is enough to tell values apart here. */
function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}
