import { OncewardError } from "../errors/errors.ts";
import { classOf, isAboutKeyTime } from "../errors/mapping.ts";
import { ReasonClass } from "../gen/onceward/v1/facts_pb.ts";
import { utf8Bytes } from "../wire/bytes.ts";
import { type Headers, pickHeaders, type WholeResponse } from "./whole-response.ts";

/**
 * The `type` of each problem (RFC 9457) with which the guard itself answers, without calling the handler. The statuses are those
 * of the profile `onceward`:
 *
 * | type, after `urn:onceward:problem:` | status | meaning | what the client does |
 * |---|---|---|---|
 * | `key-missing` | 400 | the route requires an Idempotency-Key | sends one |
 * | `key-malformed` | 400 | the header is neither a structured-field string nor a bare key of 1-255 characters | corrects it |
 * | `request-unreadable` | 400 | the request has no fingerprint: a part of its identity is missing, or is not well-formed Unicode | corrects it |
 * | `key-reused` | 422 | the key was used for a different request | makes a new key |
 * | `key-without-time` | 400 | the policy requires that keys contain their time, and this one has none, or one in the future | sends a UUID of version 7, made when the operation begins |
 * | `key-too-old` | 410 | the request may have been carried out so long ago that it is forgotten | finds out, before it makes a new key |
 * | `in-progress` | 409, Retry-After | the first request is still in progress | repeats the same request |
 * | `ambiguous` | 409 | it is unknown whether an earlier attempt had its effect, and a person must find out | asks the API's owner |
 * | `result-gone` | 410 | the request was carried out, once; its response is no longer stored, or was too large | reads the resource instead |
 * | `unavailable` | 503, Retry-After | the key can't be checked: this request was not carried out, and an earlier one may have been | repeats the same request |
 */
export type ProblemType = keyof typeof PROBLEMS;

/** The statuses of a profile that differ from those of the table. */
export type ProblemStatuses = Readonly<Partial<Record<ProblemType, number>>>;

/** The refusal of a request, in no particular format. */
export interface Problem {
  /** A URI, `urn:onceward:problem:` and the {@link ProblemType}. */
  readonly type: `${typeof TYPE_PREFIX}${ProblemType}`;
  readonly status: number;
  /** The same for every problem of the type. */
  readonly title: string;
  /** What the client can do about it. */
  readonly detail: string;
  /** The header Retry-After, in seconds. */
  readonly retryAfterSeconds: number | undefined;
}

/** A refusal's body in the API's own format. */
export interface ProblemBody {
  readonly contentType: string;
  readonly body: string | Uint8Array;
}

const TYPE_PREFIX = "urn:onceward:problem:";

/** The problems by their types, with the statuses of the profile `onceward`. */
export const PROBLEMS = {
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
    title: "The request can't be identified.",
    detail: "A part that identifies the request is missing, or is not well-formed Unicode.",
  },
  "key-reused": {
    status: 422,
    title: "The Idempotency-Key was used for another request.",
    detail: "Send this request with a new key, or repeat the first request as it was.",
  },
  "key-without-time": {
    status: 400,
    title: "The Idempotency-Key must contain the time at which it was made.",
    detail: "Send a UUID of version 7, or a ULID, made when the operation begins by a clock that is right.",
  },
  "key-too-old": {
    status: 410,
    title: "Too old to retry: find out what happened.",
    detail:
      "The request may have been carried out, and its record is gone. Read the resource, and use a new key only if it was not.",
  },
  "in-progress": {
    status: 409,
    title: "A request with this Idempotency-Key is in progress.",
    detail: "Repeat the same request later.",
  },
  ambiguous: {
    status: 409,
    title: "It is not known whether an earlier request had its effect.",
    detail: "The owner of this API must find out. A new key could repeat the effect.",
  },
  "result-gone": {
    status: 410,
    title: "The request was carried out; its response is gone.",
    detail: "Read the resource instead. A new key would repeat the effect.",
  },
  unavailable: {
    status: 503,
    title: "The Idempotency-Key can't be checked now.",
    detail: "This request was not carried out; an earlier one may have been. Repeat the same request later.",
  },
} as const;

/** Returns the problem of a type, with the profile's status. `retryAfterMs` is rounded up to whole seconds. */
export function problemFor(statuses: ProblemStatuses, type: ProblemType, retryAfterMs?: number): Problem {
  const retryAfterSeconds =
    retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  const { status, title, detail } = PROBLEMS[type];
  return {
    type: `${TYPE_PREFIX}${type}`,
    status: statuses[type] ?? status,
    title,
    detail,
    retryAfterSeconds,
  };
}

/**
 * Returns the response for a problem. It links to the problem's type (RFC 6903, 6), which marks it in every format as the refusal of
 * a guard, and to the API's page about keys if it has one.
 */
export function problemResponse(
  { type, status, retryAfterSeconds }: Problem,
  { contentType, body }: ProblemBody,
  documentation: string | undefined,
): WholeResponse {
  const mark = `<${type}>; rel="type"`;
  return {
    status,
    headers: {
      "content-type": contentType,
      link: documentation === undefined ? mark : `${mark}, <${documentation}>; rel="describedby"`,
      ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
    },
    body: typeof body === "string" ? utf8Bytes(body) : body,
  };
}

const LINK: ReadonlySet<string> = new Set(["link"]);
const MARK = new RegExp(`<${TYPE_PREFIX}([a-z-]+)>; rel="type"`);

/**
 * Returns the type, after its prefix, of the refusal that a response is by the link of its guard, in this process or another one;
 * undefined for any other response.
 */
export function refusalIn(headers: Headers): string | undefined {
  return MARK.exec(pickHeaders(headers, LINK).link ?? "")?.[1];
}

/**
 * Returns the problem for an error under which the handler was not called; undefined for an error that does not
 * concern the API's client (a bad credential, a bug) but its owner.
 */
export function problemOf(statuses: ProblemStatuses, error: unknown): Problem | undefined {
  if (!(error instanceof OncewardError)) return undefined;
  if (isAboutKeyTime(error)) return problemFor(statuses, "key-without-time");
  switch (classOf(error)) {
    case ReasonClass.WAIT:
      return problemFor(statuses, "in-progress", error.retryDelayMs ?? 0);
    case ReasonClass.ASK:
      return problemFor(statuses, "ambiguous");
    case ReasonClass.GONE:
      return problemFor(statuses, "result-gone");
    case ReasonClass.REUSED:
      return problemFor(statuses, "key-reused");
    case ReasonClass.TOO_OLD:
      return problemFor(statuses, "key-too-old");
    case ReasonClass.RETRY:
      return problemFor(statuses, "unavailable", error.retryDelayMs ?? 0);
    default:
      return undefined;
  }
}
