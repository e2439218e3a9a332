import { AmbiguousError, InProgressError, OncewardError, ResultUnavailableError } from "../errors/errors.ts";
import { isRetryable } from "../errors/mapping.ts";
import { utf8Bytes } from "../wire/bytes.ts";
import type { WholeResponse } from "./whole-response.ts";

/**
 * The `type` of each problem (RFC 9457) that the guard answers with, instead of the handler:
 *
 * | type, after `urn:onceward:problem:` | status | what it says | what a client does |
 * |---|---|---|---|
 * | `key-missing` | 400 | the route requires an Idempotency-Key | sends one |
 * | `key-malformed` | 400 | the header is neither a structured-field string nor a bare key of 1-255 characters | sends one |
 * | `request-unreadable` | 400 | the request can't be told from others: what identifies it is missing, or no well-formed Unicode | repairs it |
 * | `key-reused` | 422 | the key was used for another request | makes a new key |
 * | `in-progress` | 409, Retry-After | the first request is still being carried out | repeats the same request |
 * | `ambiguous` | 409 | nobody knows whether an earlier attempt had its effect, and somebody has to find out | asks the API's owner |
 * | `result-gone` | 410 | it was carried out, once; its response is no longer stored, or was too large to be | reads the resource instead |
 * | `unavailable` | 503, Retry-After | it can't be known whether it was carried out before, so nothing was | repeats the same request |
 */
export type ProblemType = keyof typeof PROBLEMS;

/** Why a request is refused, before it is written as a response. */
export interface Problem {
  /** A URI, `urn:onceward:problem:` and the {@link ProblemType}. */
  readonly type: `${typeof TYPE_PREFIX}${ProblemType}`;
  readonly status: number;
  /** The same for every problem of the type. */
  readonly title: string;
  /** What a client does about it. */
  readonly detail: string;
  /** The header Retry-After, in seconds. */
  readonly retryAfterSeconds: number | undefined;
}

/** A refusal's body in a format of the API's own. */
export interface ProblemBody {
  readonly contentType: string;
  readonly body: string | Uint8Array;
}

const TYPE_PREFIX = "urn:onceward:problem:";

const PROBLEMS = {
  "key-missing": {
    status: 400,
    title: "This operation requires an Idempotency-Key.",
    detail: "Send the header Idempotency-Key: new for each operation, the same for each of its attempts.",
  },
  "key-malformed": {
    status: 400,
    title: "The Idempotency-Key is malformed.",
    detail:
      'The header Idempotency-Key is 1-255 characters, with or without quotes, such as "8e03978e-40d5".',
  },
  "request-unreadable": {
    status: 400,
    title: "The request can't be told from others.",
    detail: "What identifies the request is missing, or is no well-formed Unicode.",
  },
  "key-reused": {
    status: 422,
    title: "The Idempotency-Key was used for another request.",
    detail: "Send this request with a new key, or repeat the first request as it was.",
  },
  "in-progress": {
    status: 409,
    title: "A request with this Idempotency-Key is in progress.",
    detail: "Repeat the same request later.",
  },
  ambiguous: {
    status: 409,
    title: "It is not known whether an earlier request had its effect.",
    detail: "The owner of this API has to find out. A new key could repeat the effect.",
  },
  "result-gone": {
    status: 410,
    title: "The request was carried out; its response is gone.",
    detail: "Read the resource instead. A new key would repeat the effect.",
  },
  unavailable: {
    status: 503,
    title: "It can't be known now whether the request was carried out.",
    detail: "Nothing was carried out now. Repeat the same request later.",
  },
} as const;

/** Returns the problem of a type. `retryAfterMs` is rounded up to whole seconds. */
export function problemFor(type: ProblemType, retryAfterMs?: number): Problem {
  const retryAfterSeconds =
    retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  return { type: `${TYPE_PREFIX}${type}`, ...PROBLEMS[type], retryAfterSeconds };
}

/** Returns the response that a problem is answered with, in the API's own format if it has one. */
export function problemResponse<Native>(
  problem: Problem,
  write: (problem: Problem, request: Native) => ProblemBody = standardBody,
  request: Native,
): WholeResponse {
  const { contentType, body } = write(problem, request);
  const { status, retryAfterSeconds } = problem;
  return {
    status,
    headers: {
      "content-type": contentType,
      ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
    },
    body: typeof body === "string" ? utf8Bytes(body) : body,
  };
}

function standardBody({ type, title, status, detail }: Problem): ProblemBody {
  return {
    contentType: "application/problem+json",
    body: JSON.stringify({ type, title, status, detail }),
  };
}

/**
 * Returns what the client of the API is told of an error under which nothing ran. Undefined for what is not its concern (a
 * bad credential, a bug): that is the API owner's to see.
 */
export function problemOf(error: unknown): Problem | undefined {
  if (!(error instanceof OncewardError)) return undefined;
  if (error instanceof InProgressError) return problemFor("in-progress", error.retryDelayMs ?? 0);
  if (error instanceof AmbiguousError) return problemFor("ambiguous");
  if (error instanceof ResultUnavailableError) return problemFor("result-gone");
  if (error.reason === "FINGERPRINT_MISMATCH") return problemFor("key-reused");
  if (error.reason === "CLOSED" || isRetryable(error))
    return problemFor("unavailable", error.retryDelayMs ?? 0);
  return undefined;
}
