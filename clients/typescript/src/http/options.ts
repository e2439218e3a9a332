import { type AdapterRunOptions, pickRunOptions } from "../run/guarded-run.ts";
import type { Problem, ProblemBody } from "./problems.ts";

/** How a route's requests are guarded. `Native` is the framework's request (of Hono: its context). */
export interface HttpOptions<Native> extends AdapterRunOptions {
  /**
   * Who calls, as the API authenticated them: an account's id, never a secret. A key is one caller's own: without this,
   * one could be answered with another's response. Where everybody may see everything, a constant. Must not be empty.
   */
  readonly caller: (request: Native) => string;
  /** Which methods are guarded; others pass. Default: POST and PATCH. */
  readonly methods?: readonly string[];
  /** Whether a guarded request without a key is refused with 400; else it passes, unguarded. Default: true. */
  readonly required?: boolean;
  /**
   * How long a request waits for another one with its key before it is answered with 409. Default: 0, as the draft has
   * it; with more, whoever repeats a request too soon gets the first one's answer.
   */
  readonly waitMs?: number;
  /**
   * What the key stands for, any JSON value, or a promise of one: the same key with another one is answered with 422, and
   * undefined or a lone surrogate with 400. Default: method, path, query and body. Leave out what a client changes between
   * its attempts.
   */
  readonly fingerprint?: (request: Native) => unknown;
  /**
   * Whether a response with this status is the operation's outcome, to be replayed; else the claim is released, and the
   * next attempt runs. Default: below 500, but for 401, 408, 425 and 429, which ask for another attempt.
   */
  readonly stores?: (status: number) => boolean;
  /**
   * Headers to replay besides those that describe the body, Location, Link, ETag, Last-Modified, Cache-Control, Vary.
   * All others are only sent the first time: cookies and hop-by-hop headers can't be added.
   */
  readonly replayHeaders?: readonly string[];
  /**
   * How long a handler's claim is kept after the client has left, if the handler does not answer: such a handler may have
   * lost its response and never end. Then `claim.signal` aborts, the event `abandoned` is told, and once per client a
   * warning of the process (ONCEWARD_ABANDONED). The lease runs out, and the namespace's policy decides: RECLAIM runs the
   * next attempt. Set it above what your slowest handler takes. Default: 900,000 (15 minutes). Where the platform does not
   * tell that a client leaves, it has no effect.
   */
  readonly abandonAfterMs?: number;
  /**
   * Writes the body of refusals in the API's own format; status and Retry-After stay as they are. Default: RFC 9457's
   * application/problem+json.
   */
  readonly problemBody?: (problem: Problem, request: Native) => ProblemBody;
}

/** The options with their defaults filled in, in the shape that each request asks for. */
export interface HttpPolicy<Native> {
  readonly run: AdapterRunOptions & { readonly waitMs: number };
  readonly caller: (request: Native) => string;
  readonly methods: ReadonlySet<string>;
  readonly required: boolean;
  readonly fingerprint: ((request: Native) => unknown) | undefined;
  readonly stores: (status: number) => boolean;
  readonly replayHeaders: ReadonlySet<string>;
  readonly abandonAfterMs: number;
  readonly problemBody: ((problem: Problem, request: Native) => ProblemBody) | undefined;
}

/** As long as a policy's longest lease is unless tuned: a process that died keeps others away for that long, too. */
const DEFAULT_ABANDON_AFTER_MS = 15 * 60_000;
/** Of setTimeout, 24 days; it takes a longer one for none. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const DEFAULT_METHODS = ["POST", "PATCH"];

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

/** Of one connection (RFC 9110, 7.6.1), of one message, or of one moment: none of them is part of an outcome. */
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

/** Each is about the attempt, not about the operation: who made it, or when. */
const ASKS_FOR_ANOTHER_ATTEMPT: ReadonlySet<number> = new Set([401, 408, 425, 429]);

/** @throws TypeError for an option that can't be meant. */
export function httpPolicy<Native>(options: HttpOptions<Native>): HttpPolicy<Native> {
  const { waitMs = 0, caller, fingerprint, methods = DEFAULT_METHODS } = options;
  const { required = true, stores = isOutcome, replayHeaders = [], problemBody } = options;
  const { abandonAfterMs = DEFAULT_ABANDON_AFTER_MS } = options;
  if (typeof caller !== "function") throw new TypeError("caller must be a function of the request");
  if (!Number.isSafeInteger(abandonAfterMs) || abandonAfterMs < 0 || abandonAfterMs > MAX_TIMER_MS) {
    throw new TypeError(`abandonAfterMs must be a whole number of milliseconds, 0-${MAX_TIMER_MS}`);
  }
  const extraHeaders = replayHeaders.map((name) => name.toLowerCase());
  const forbidden = extraHeaders.filter((name) => NEVER_REPLAYED.has(name));
  if (forbidden.length > 0) throw new TypeError(`replayHeaders must not name ${forbidden.join(", ")}`);
  return {
    run: { ...pickRunOptions(options), waitMs },
    caller,
    methods: new Set(methods),
    required,
    fingerprint,
    stores,
    replayHeaders: new Set([...DEFAULT_REPLAY_HEADERS, ...extraHeaders]),
    abandonAfterMs,
    problemBody,
  };
}

function isOutcome(status: number): boolean {
  return status < 500 && !ASKS_FOR_ANOTHER_ATTEMPT.has(status);
}
