import type { Violation } from "../errors/errors.ts";
import { checkText, refusedField, throwIfAny } from "../errors/violations.ts";
import type { Codec } from "../run/codec.ts";
import {
  type AdapterRunOptions,
  checkGuardOptions,
  checkOptionalFunction,
  pickRunOptions,
} from "../run/guarded-run.ts";
import type { ResolveFor } from "../run/resolution.ts";
import { MAX_KEY_BYTES, MAX_TIMER_MS } from "../wire/limits.ts";
import type { Problem, ProblemBody } from "./problems.ts";
import { type HttpProfile, PROFILES, type Wire, wireOf } from "./profiles.ts";
import { markCodec, responseCodec, type WholeResponse } from "./whole-response.ts";

/** A handler's whole response, as `stores` judges it. */
export interface HandlerResponse {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if it is larger than any policy allows. */
  readonly body: Uint8Array | undefined;
  /** The body's value; undefined if it is not JSON, or compressed. */
  readonly json: unknown;
}

/** Judges a response: it is stored, or not, or it does not say whether the effect happened. */
export type Stores = (response: HandlerResponse) => boolean | "unknown";

/** How a route's requests are guarded. `Native` is the framework's request; with Hono, its context. */
export interface HttpOptions<Native> extends AdapterRunOptions {
  /**
   * Returns the caller, as the API authenticated it: an account's id, never a secret. Each caller has its own keys;
   * otherwise one caller could get another's response. If all callers may see everything, return a constant. Must not
   * be empty.
   */
  readonly caller: (request: Native) => string;
  /**
   * The operation's name, such as "refund". It replaces method and route in the key: frameworks and languages write a route's pattern
   * differently, so that services in several languages behind one route, or two routes of one operation, need a name. Not for the profile
   * `stripe`, whose keys count for all endpoints. Default: method and route, or as the profile says.
   */
  readonly operation?: string;
  /** The header that has the key, for the profile `onceward` alone: the others name it. Default: Idempotency-Key. */
  readonly header?: string;
  /**
   * The protocol that clients expect: what a key may be, which status and body each refusal has, what marks a replay, and what
   * is echoed. Also the default of `methods` and `required`. With each profile, nothing runs twice, no caller gets another's
   * response, and cookies and hop-by-hop headers are not replayed. A change of the profile begins new keys. The guide "Profiles
   * of HTTP" has the table. Default: `onceward`.
   */
  readonly profile?: HttpProfile;
  /**
   * The methods that are guarded, at least one, in upper or lower case; requests with other methods pass. Default: the
   * profile's; POST and PATCH for `onceward`.
   */
  readonly methods?: readonly string[];
  /**
   * Whether a guarded request without a key is refused with 400; otherwise it passes, unguarded. Default: the profile's; true
   * for `onceward`.
   */
  readonly required?: boolean;
  /**
   * How long a request waits for another one with its key before it is answered with 409, in milliseconds. Default:
   * 0, as in the draft. With a wait, a client that retries too soon gets the first request's answer.
   */
  readonly waitMs?: number;
  /**
   * Returns the request's identity, any JSON value, or a promise of one: the same key with a different value is
   * answered with 422; undefined, a number that is not finite or a lone surrogate with 400. A value whose type has no
   * fingerprint, such as a Map, an instance of a class or bytes that are not a SHA-256, is the program's error: the
   * request fails with an InvalidRequestError for the framework's error handler (500), and nothing runs. The first refusal
   * of a guard is a warning of the process (ONCEWARD_NO_FINGERPRINT) with its reason. Default: method, path, query and body: JSON by its
   * value, a multipart form by its parts, without the boundary. Leave out the parts that a client changes between its attempts.
   */
  readonly fingerprint?: (request: Native) => unknown;
  /**
   * Returns whether a response is the operation's outcome: `true`, it is stored and replayed; `false`, there was no effect, the claim is
   * released, and the next attempt runs; or `unknown`, the claim is left to the namespace's policy. A 5xx that is `false` counts as an
   * error (`onError`). Called for statuses from 200 on; if it throws, the outcome is unknown. Default: `true` below 500, except 401, 408,
   * 425 and 429, which ask for another attempt; `unknown` for 502, 504, and 503 without Retry-After, with which a gateway or a time limit
   * answers while the handler may still run. The refusal of another guard within the handler, or of a service whose response the handler
   * passes on with its header Link, is never stored. `mark`: of a response below 400, only that it happened is kept, such as of a
   * secret that is shown once; duplicates are answered with 410, `result-gone`.
   */
  readonly stores?: Stores | "mark";
  /**
   * Finds out what became of an earlier attempt, as `RunOptions.resolve` describes it. `happened` takes the Response of fetch to send and
   * to store, such as `happened(Response.json(charge, { status: 201 }))`. Default: none.
   */
  readonly resolve?: ResolveFor<Native> | undefined;
  /**
   * Headers to replay besides those that describe the body, Location, Link, ETag, Last-Modified, Cache-Control, Vary.
   * All others are only sent the first time. Cookies and hop-by-hop headers can't be added.
   * Default: none.
   */
  readonly replayHeaders?: readonly string[];
  /**
   * How long to keep a handler's claim after the client has disconnected, if the handler does not answer, in
   * milliseconds: such a handler may have lost its response and never end. Then `claim.signal` aborts, the event
   * `abandoned` is emitted, and, once per client, a warning of the process (ONCEWARD_ABANDONED). The lease expires,
   * and the namespace's policy applies: RECLAIM runs the next attempt. Set it above the time of your slowest handler.
   * Default: 900,000 (15 minutes). No effect on platforms that don't report disconnects.
   */
  readonly abandonAfterMs?: number;
  /**
   * Writes the body of refusals in the API's own format; status and Retry-After stay unchanged. Default: the
   * profile's; RFC 9457's application/problem+json for `onceward`.
   */
  readonly problemBody?: (problem: Problem, request: Native) => ProblemBody;
  /** The absolute URL of the API's page about its keys: refusals link to it, `Link: <URL>; rel="describedby"`. Default: none. */
  readonly documentation?: string;
}

/** The options with their defaults filled in, in the form that the guard uses. */
export interface HttpPolicy<Native> {
  readonly run: ReturnType<typeof pickRunOptions> & { readonly waitMs: number };
  readonly caller: (request: Native) => string;
  readonly operation: string | undefined;
  readonly header: string;
  readonly methods: ReadonlySet<string>;
  readonly required: boolean;
  readonly fingerprint: ((request: Native) => unknown) | undefined;
  readonly stores: Stores;
  readonly codec: Codec<WholeResponse>;
  readonly resolve: ResolveFor<Native> | undefined;
  readonly replayHeaders: ReadonlySet<string>;
  readonly abandonAfterMs: number;
  readonly problemBody: (problem: Problem, request: Native) => ProblemBody;
  readonly documentation: string | undefined;
  readonly wire: Wire;
}

/** As the draft writes it; refusals name it. */
const DEFAULT_HEADER = "Idempotency-Key";
/** The longest lease of the default policy: after a crash, other callers wait this long, too. */
const DEFAULT_ABANDON_AFTER_MS = 15 * 60_000;

/**
 * The methods that a guard may name: those of RFC 9110, PATCH (RFC 5789), QUERY, and those of WebDAV that change
 * something (RFC 4918). A misspelt one would guard nothing.
 */
const METHODS: ReadonlySet<string> = new Set([
  ...["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY"],
  ...["COPY", "LOCK", "MKCOL", "MOVE", "PROPPATCH", "UNLOCK"],
]);

const DEFAULT_REPLAY_HEADERS = [
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-location",
  "content-type",
  "etag",
  "last-modified",
  "link",
  "location",
  "vary",
];

/** Headers of one connection (RFC 9110, 7.6.1), one message or one moment: they are not part of an outcome. */
const NEVER_REPLAYED: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-connection",
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** These say something about the attempt (who made it, when), not about the operation. */
const ASKS_FOR_ANOTHER_ATTEMPT: ReadonlySet<number> = new Set([401, 408, 425, 429]);

/** Checks the options, and fills in their defaults. @throws InvalidRequestError for an invalid option. */
export function httpPolicy<Native>(options: HttpOptions<Native>): HttpPolicy<Native> {
  checkGuardOptions(options);
  const wire = checkedProfile(options.profile);
  const { waitMs = 0, caller, fingerprint, methods = wire.methods, documentation } = options;
  const { required = wire.required, replayHeaders = [], problemBody } = options;
  const stores = options.stores === "mark" ? isOutcome : (options.stores ?? isOutcome);
  const { abandonAfterMs = DEFAULT_ABANDON_AFTER_MS } = options;
  checkOptionalFunction("problemBody", problemBody);
  if (!Number.isSafeInteger(abandonAfterMs) || abandonAfterMs < 0 || abandonAfterMs > MAX_TIMER_MS) {
    throw refusedField("abandonAfterMs", `must be a whole number of milliseconds, 0-${MAX_TIMER_MS}`);
  }
  if (documentation !== undefined && !isLink(documentation))
    throw refusedField("documentation", "must be an absolute URL of http or https");
  return {
    run: { ...pickRunOptions({ ...options, stores: undefined }), waitMs },
    codec: options.stores === "mark" ? markCodec : responseCodec,
    caller,
    operation: checkedOperation(options, wire),
    header: checkedHeader(options),
    methods: checkedMethods(methods),
    required,
    fingerprint,
    stores: wire.dropsServerErrors ? exceptServerErrors(stores) : stores,
    resolve: options.resolve,
    replayHeaders: new Set([...DEFAULT_REPLAY_HEADERS, ...checkedHeaders(replayHeaders)]),
    abandonAfterMs,
    problemBody: problemBody ?? wire.writeBody,
    documentation,
    wire,
  };
}

function checkedProfile(name: string = "onceward"): Wire {
  const wire = wireOf(name);
  if (wire !== undefined) return wire;
  throw refusedField("profile", `must be one of ${Object.keys(PROFILES).join(", ")}`);
}

function checkedOperation({ operation, profile }: HttpOptions<never>, wire: Wire): string | undefined {
  if (operation === undefined) return undefined;
  const violations: Violation[] = [];
  checkText(violations, "operation", operation, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  throwIfAny(violations);
  if (wire.scope !== "all endpoints") return operation;
  throw refusedField(
    "operation",
    `must not be set with the profile ${profile}: its keys count for all endpoints`,
  );
}

function checkedHeader({ header = DEFAULT_HEADER, profile = "onceward" }: HttpOptions<never>): string {
  if (typeof header !== "string" || !/^[\w!#$%&'*+.^`|~-]{1,255}$/.test(header))
    throw refusedField("header", "must be the name of a header, 1-255 characters");
  if (profile === "onceward" || header.toLowerCase() === DEFAULT_HEADER.toLowerCase()) return header;
  throw refusedField("header", `must be Idempotency-Key with the profile ${profile}`);
}

/** The text is a header's value: it must not end the link. */
function isLink(url: unknown): boolean {
  return typeof url === "string" && /^https?:\/\/[\x21-\x3b\x3d\x3f-\x7e]+$/.test(url) && URL.canParse(url);
}

function isOutcome({ status, headers }: HandlerResponse): boolean | "unknown" {
  if (status < 500) return !ASKS_FOR_ANOTHER_ATTEMPT.has(status);
  // Load shedding says when to come back; time limits do not.
  const isLimit = status === 503 && headers["retry-after"] === undefined;
  return isLimit || status === 502 || status === 504 ? "unknown" : false;
}

function exceptServerErrors(stores: Stores): Stores {
  return (response) => {
    const verdict = stores(response);
    return verdict === true ? response.status < 500 : verdict;
  };
}

/** Returns the methods in upper case. @throws InvalidRequestError for a list that would guard less than it says. */
function checkedMethods(methods: readonly string[]): ReadonlySet<string> {
  const names = checkedTexts("methods", methods).map((name) => name.toUpperCase());
  if (names.length === 0)
    throw refusedField("methods", "must name a method; without one, nothing is guarded");
  const unknown = names.filter((name) => !METHODS.has(name));
  if (unknown.length === 0) return new Set(names);
  throw refusedField("methods", `must name methods of HTTP, names ${JSON.stringify(unknown.join(", "))}`);
}

function checkedHeaders(replayHeaders: readonly string[]): readonly string[] {
  const names = checkedTexts("replayHeaders", replayHeaders).map((name) => name.toLowerCase());
  const forbidden = names.filter((name) => NEVER_REPLAYED.has(name));
  if (forbidden.length > 0) throw refusedField("replayHeaders", `must not name ${forbidden.join(", ")}`);
  return names;
}

/** A text alone would be read as a list of its letters. */
function checkedTexts(field: string, list: unknown): readonly string[] {
  if (Array.isArray(list) && list.every((text) => typeof text === "string")) return list;
  throw refusedField(field, "must be an array of strings");
}
