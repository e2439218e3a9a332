import { isRetryable } from "../error-mapping.ts";
import { AmbiguousError, InProgressError, OncewardError, ResultUnavailableError } from "../errors.ts";
import { utf8Bytes } from "../utf8.ts";
import type { WholeResponse } from "./whole-response.ts";

/**
 * The `type` of each problem (RFC 9457) that the guard answers with, instead of the handler:
 *
 * | type, after `urn:onceward:problem:` | status | what it says | what a client does |
 * |---|---|---|---|
 * | `key-missing` | 400 | the route requires an Idempotency-Key | sends one |
 * | `key-malformed` | 400 | the header is neither a structured-field string nor a bare key of 1-255 characters | sends one |
 * | `request-unreadable` | 400 | the body can't be told from another: it is no well-formed JSON | repairs it |
 * | `key-reused` | 422 | the key was used for another request | makes a new key |
 * | `in-progress` | 409, Retry-After | the first request is still being carried out | repeats the same request |
 * | `ambiguous` | 409 | nobody knows whether an earlier attempt had its effect, and somebody has to find out | asks the API's owner |
 * | `result-gone` | 410 | it was carried out, once; its response can't be had any more | reads the resource instead |
 * | `unavailable` | 503, Retry-After | it can't be known whether it was carried out before, so nothing was | repeats the same request |
 */
export type ProblemType = keyof typeof PROBLEMS;

const TYPE_PREFIX = "urn:onceward:problem:";

const PROBLEMS = {
  "key-missing": { status: 400, title: "This operation requires an Idempotency-Key." },
  "key-malformed": { status: 400, title: "The Idempotency-Key is malformed." },
  "request-unreadable": { status: 400, title: "The request's body is no well-formed JSON." },
  "key-reused": { status: 422, title: "The Idempotency-Key was used for another request." },
  "in-progress": { status: 409, title: "A request with this Idempotency-Key is in progress." },
  ambiguous: { status: 409, title: "It is not known whether an earlier request had its effect." },
  "result-gone": { status: 410, title: "The request was carried out; its response is gone." },
  unavailable: { status: 503, title: "It can't be known now whether the request was carried out." },
} as const;

/** A problem as the response it is answered with. `retryAfterMs` is rounded up to whole seconds. */
export function problemResponse(type: ProblemType, retryAfterMs?: number): WholeResponse {
  const { status, title } = PROBLEMS[type];
  return {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(retryAfterMs !== undefined && {
        "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))),
      }),
    },
    body: utf8Bytes(JSON.stringify({ type: TYPE_PREFIX + type, title, status })),
  };
}

/**
 * What the client of the API is told of an error under which nothing ran. Undefined for what is not its concern (a bad
 * credential, a bug): that is the API owner's to see.
 */
export function problemOf(error: unknown): WholeResponse | undefined {
  if (!(error instanceof OncewardError)) return undefined;
  if (error instanceof InProgressError) return problemResponse("in-progress", error.retryDelayMs ?? 0);
  if (error instanceof AmbiguousError) return problemResponse("ambiguous");
  if (error instanceof ResultUnavailableError) return problemResponse("result-gone");
  if (error.reason === "FINGERPRINT_MISMATCH") return problemResponse("key-reused");
  if (error.reason === "CLOSED" || isRetryable(error)) {
    return problemResponse("unavailable", error.retryDelayMs ?? 0);
  }
  return undefined;
}
