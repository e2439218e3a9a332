import { InvalidRequestError } from "../errors/catalogue.ts";
import type { OncewardError } from "../errors/errors.ts";
import { fingerprintWithFiles } from "../keys/fingerprint.ts";
import { keyTime } from "../keys/key-time.ts";
import { joinKey } from "../keys/keys.ts";
import { UnsupportedFingerprintType } from "../keys/plain-value.ts";
import { type Claim, ClaimAbandoned } from "../run/claim.ts";
import type { Runner } from "../run/client.ts";
import { Warnings } from "../run/events.ts";
import { callerOf, guardedRun, warnOfFingerprint } from "../run/guarded-run.ts";
import {
  isInterruption,
  isOutcomeUnknown,
  NoEffectError,
  OutcomeUnknownError,
  ownWordOf,
} from "../run/outcome-unknown.ts";
import { happened, type ResolveFor, resolveFor } from "../run/resolution.ts";
import { inAcceptedCoding } from "./content-coding.ts";
import { type HttpOptions, type HttpPolicy, httpPolicy, type Stores } from "./options.ts";
import {
  type Problem,
  type ProblemType,
  problemFor,
  problemOf,
  problemResponse,
  refusalIn,
} from "./problems.ts";
import type { Wire } from "./profiles.ts";
import { contentOfBody, jsonIn } from "./request-content.ts";
import { type Headers, isFinalStatus, pickHeaders, type WholeResponse } from "./whole-response.ts";

/** A request, independent of the framework. */
export interface GuardedRequest<Native> {
  readonly native: Native;
  readonly method: string;
  /** The pattern of its route, such as `/charges/:id/refunds`; its path if the framework has no patterns. */
  readonly route: string;
  readonly path: string;
  /** The query as sent, with its question mark; empty if there is none. */
  readonly query: string;
  /** Returns a header, by its name in lower case; the values of one that was sent several times are joined with commas. */
  readonly header: (name: string) => string | undefined;
  /** Returns the body: bytes, or the value of a body parser. Only called if it is needed. */
  readonly body: () => unknown;
  /** Sets a header of the response to this request: a replay's, a refusal's or the handler's. */
  readonly setHeader: (name: string, value: string) => void;
  /** Ends the waits before the handler is called; with an OncewardError ABORTED, the answer is 503. */
  readonly signal?: AbortSignal;
}

/** A handler's response. */
export interface Handled<Sent> {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined if it is larger than any policy allows. */
  readonly body: Uint8Array | undefined;
  /** The response as the framework sends it. */
  readonly sent: Sent;
  /** The handler's error, if this is the framework's answer to it. */
  readonly error?: unknown;
}

/** A handler that has been called. */
export interface Handling<Sent> {
  /** Resolves once the response is whole. */
  readonly handled: Promise<Handled<Sent>>;
  /** Aborts when the client disconnects. */
  readonly disconnected: AbortSignal;
  /**
   * Ends a response that is not sent: stops reading it, and destroys it if the handler did. Called once the claim is
   * released, because the client may repeat the request as soon as its connection closes. May be called twice.
   */
  abandon(): void;
}

/** A handler rejects with this if its response will never be whole: it may have had its effect. `cause` is its error. */
export class ResponseDestroyed extends Error {
  override readonly name = "ResponseDestroyed";

  constructor(cause?: unknown) {
    super("the response was cut short", cause === undefined ? undefined : { cause });
  }
}

/**
 * The answer to a request whose handler the guard has not called:
 *
 * - `unguarded`: call the handler, under the claim of an earlier guard, or without one.
 * - `answered`: send this response, a replay or a problem.
 */
export type NotHandled =
  | { readonly kind: "unguarded"; readonly claim: Claim | undefined }
  | { readonly kind: "answered"; readonly response: WholeResponse };

/**
 * The answer to a request:
 *
 * - `handled`: send the handler's response.
 * - `gone`: send nothing. The handler destroyed its response, or was abandoned after the client had disconnected.
 */
export type Answer<Sent> =
  | NotHandled
  | { readonly kind: "handled"; readonly sent: Sent }
  | { readonly kind: "gone" };

/**
 * Answers a request, and calls the handler unless its operation was done before.
 *
 * Rejects with the handler's error, or with an OncewardError for the API's owner; then the handler was not called.
 */
export type Guard<Native extends object> = <Sent>(
  request: GuardedRequest<Native>,
  handle: (claim: Claim) => Handling<Sent>,
) => Promise<Answer<Sent>>;

/** Thrown for a response with this status, which is not stored; the run judges it as an error that its cause has caused. */
class NotStored extends Error {
  /** Stored as the reason of the release. */
  override readonly name: string;

  constructor(status: number, cause: unknown) {
    super(`HTTP ${status}`, { cause });
    this.name = this.message;
  }
}

/**
 * Returns the guard that all HTTP adapters use, for an adapter of another framework, which describes the request to the guard,
 * calls the handler when the guard does, and sends the answer.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function createGuard<Native extends object>(
  onceward: Runner,
  options: HttpOptions<Native>,
): Guard<Native> {
  const policy = httpPolicy(options);
  const { wire } = policy;
  const warnings = new Warnings();
  return async (request, handle) => {
    const { native } = request;
    const outerClaim = findClaim(native, policy.run.namespace);
    // A fetch Request may have the method "patch" in lower case.
    if (!policy.methods.has(request.method.toUpperCase()) || outerClaim !== undefined)
      return unguarded(outerClaim);
    const refused = ({ title, detail, ...rest }: Problem) => {
      const named = (text: string) => text.replaceAll("Idempotency-Key", policy.header);
      const problem = { title: named(title), detail: named(detail), ...rest };
      return answered(problemResponse(problem, policy.problemBody(problem, native), policy.documentation));
    };
    const refusedAs = (type: ProblemType) => refused(problemFor(wire.statuses, type));
    const name = policy.header.toLowerCase();
    const header = request.header(name);
    if (header === undefined) return policy.required ? refusedAs("key-missing") : unguarded();
    if (wire.echoes) request.setHeader(name, header);
    const key = wire.parseKey(header);
    if (key === undefined) return refusedAs("key-malformed");
    const fingerprint = await fingerprintRequest(policy, request, warnings);
    if (fingerprint === undefined) return refusedAs("request-unreadable");

    const operation = {
      ...policy.run,
      key: joinKey(...endpointOf(policy, request), callerOf(policy.caller, native), key),
      keyCreatedAt: keyTime(key),
      fingerprint,
      codec: policy.codec,
      resolve: resolveFor(native, storing(policy)),
      signal: request.signal,
    };
    let handling: ReturnType<typeof handle> | undefined;
    let held: Claim | undefined;
    const handled = async (claim: Claim) => {
      held = claim;
      rememberClaim(native, policy.run.namespace, claim);
      handling = handle(claim);
      return await abandonAfter(policy.abandonAfterMs, handling);
    };
    const run = await guardedRun(onceward, operation, handled, (outcome) =>
      outcomeOf(policy, request.method, outcome, held?.signal.aborted === true),
    );
    switch (run.kind) {
      case "ran": {
        const { outcome } = run;
        if (outcome.status === "rejected" && isOutcomeUnknown(outcome.reason)) return refusedAs("ambiguous");
        const answer = answerOf(outcome);
        if (answer.kind === "gone") handling?.abandon();
        return answer;
      }
      case "replayed":
        return replay(await inAcceptedCoding(run.value, request.header("accept-encoding")), policy);
      case "refused": {
        const problem = problemOf(wire.statuses, run.error);
        if (problem === undefined) throw run.error;
        const { requestId } = run.error as OncewardError;
        if (requestId !== undefined) request.setHeader(REQUEST_ID_HEADER, requestId);
        return refused(problem);
      }
    }
  };
}

/** Returns the policy's `resolve`, whose Response becomes what is stored. */
function storing<Native>({ resolve, replayHeaders }: HttpPolicy<Native>): ResolveFor<Native> | undefined {
  return (
    resolve &&
    (async (claim, native) => {
      const found = await resolve(claim, native);
      if (found.kind !== "happened") return found;
      if (!(found.value instanceof Response))
        throw new TypeError("resolve: what happened must be a Response, such as Response.json(value)");
      const { status, headers } = found.value;
      const body = new Uint8Array(await found.value.arrayBuffer());
      return happened({ status, headers: pickHeaders(headers, replayHeaders), body });
    })
  );
}

/** Returns the answer of a handler that was called. @throws the handler's error. */
function answerOf<Sent>(outcome: PromiseSettledResult<Handled<Sent>>): Answer<Sent> {
  if (outcome.status === "fulfilled") return { kind: "handled", sent: outcome.value.sent };
  const { reason } = outcome;
  if (reason instanceof ResponseDestroyed || reason instanceof ClaimAbandoned) return { kind: "gone" };
  throw reason;
}

/**
 * Returns the part of a response that is stored. What another guard refuses, within the handler or in a service whose response the
 * handler passes on, is not this operation's outcome.
 *
 * @throws the handler's error; OutcomeUnknownError if the response, or the other guard, does not know whether the effect happened;
 *   NotStored.
 */
function outcomeOf<Native>(
  { stores, replayHeaders }: HttpPolicy<Native>,
  method: string,
  outcome: PromiseSettledResult<Handled<unknown>>,
  wasInterrupted: boolean,
): WholeResponse {
  if (outcome.status === "rejected") {
    const { reason } = outcome;
    if (!(reason instanceof ResponseDestroyed)) throw reason;
    throw ownWordOf(reason) ?? new OutcomeUnknownError("The response was cut short.", { cause: reason });
  }
  const { status, headers, body, error } = outcome.value;
  const refusal = refusalIn(headers);
  if (refusal === ("ambiguous" satisfies ProblemType))
    throw new OutcomeUnknownError("Another guard does not know whether the request had its effect.");
  const isStorable = refusal === undefined && isFinalStatus(status) && ownWordOf(error) === undefined;
  const verdict = isStorable && verdictOf(stores, outcome.value);
  if (verdict === "unknown")
    throw new OutcomeUnknownError(`HTTP ${status} does not say whether the request had its effect.`);
  if (!verdict) {
    // An answer below 500 says that there was no effect, unless the handler was interrupted.
    const isCertain = status < 500 && !wasInterrupted && !isInterruption(error);
    throw new NotStored(status, isCertain ? new NoEffectError() : error);
  }
  const hasNoBody = method.toUpperCase() === "HEAD" || BODYLESS.has(status);
  return { status, headers: pickHeaders(headers, replayHeaders), body: hasNoBody ? new Uint8Array() : body };
}

/** Statuses whose responses have no body, regardless of what a handler writes (RFC 9110, 15). */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** Asks `stores`, which runs after the effect. @throws OutcomeUnknownError if it throws. */
function verdictOf(stores: Stores, { status, headers, body }: Handled<unknown>): ReturnType<Stores> {
  const response = {
    status,
    headers: pickHeaders(headers, { has: () => true }),
    body,
    get json() {
      return body === undefined ? undefined : jsonIn(body);
    },
  };
  try {
    return stores(response);
  } catch (cause) {
    throw new OutcomeUnknownError("The option `stores` failed.", { cause });
  }
}

function unguarded(claim?: Claim): Answer<never> {
  return { kind: "unguarded", claim };
}

function answered(response: WholeResponse): Answer<never> {
  return { kind: "answered", response };
}

/** Replays only the allowed headers: any program with a key of the tenant may have written the record. */
function replay<Native>(
  { status, headers, body }: WholeResponse,
  { replayHeaders, wire }: HttpPolicy<Native>,
): Answer<never> {
  const marked = wire.replayed === undefined ? {} : { [wire.replayed]: "true" };
  return answered({ status, headers: { ...pickHeaders(headers, replayHeaders), ...marked }, body });
}

/**
 * Returns undefined if the request has no fingerprint because of its content: texts with lone surrogates would be equal
 * as UTF-8. Warns once per guard, because an option that never returns a fingerprint refuses every request.
 *
 * @throws InvalidRequestError for a value whose type has no fingerprint: the API's program has to change, not the client.
 */
async function fingerprintRequest<Native>(
  { fingerprint, wire }: HttpPolicy<Native>,
  request: GuardedRequest<Native>,
  warnings: Warnings,
): Promise<Uint8Array | undefined> {
  const content = await (fingerprint === undefined ? contentOf(request, wire) : fingerprint(request.native));
  try {
    return await fingerprintWithFiles(content);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    const isProgramsFault = error instanceof UnsupportedFingerprintType;
    warnOfFingerprint(warnings, isProgramsFault ? "an error (500)" : "400", error);
    if (isProgramsFault) throw error;
    return undefined;
  }
}

/**
 * Header of a response to a request that the service refused: it names the call in the service's log. Outcomes, such as in
 * progress or ambiguous, carry no request id.
 */
export const REQUEST_ID_HEADER = "onceward-request-id";

/** Returns the parts of a key that name the operation: the option, or what the profile counts of the endpoint. */
function endpointOf<Native>(
  { operation, wire }: HttpPolicy<Native>,
  { method, route, path }: GuardedRequest<Native>,
): readonly string[] {
  // A fetch Request may have the method "patch" in lower case.
  return operation === undefined
    ? wire.endpointOf({ method: method.toUpperCase(), route, path })
    : [operation];
}

async function contentOf(
  { method, path, query, header, body }: GuardedRequest<unknown>,
  { compares }: Wire,
): Promise<unknown> {
  const isJsonAlone = compares === "JSON body";
  const content = contentOfBody(await body(), header("content-type") ?? "", isJsonAlone);
  return isJsonAlone ? content : { method: method.toUpperCase(), path, query, ...content };
}

/** The claims that each request is handled under, by namespace. */
const claims = new WeakMap<object, Map<string, Claim>>();

/** Remembers the claim that a request is handled under, for later guards of the same request. */
export function rememberClaim(request: object, namespace: string, claim: Claim): void {
  const known = claims.get(request);
  if (known === undefined) claims.set(request, new Map([[namespace, claim]]));
  else known.set(namespace, claim);
}

/** Returns the claim of an earlier guard that the request is already handled under. */
export function findClaim(request: object, namespace: string): Claim | undefined {
  return claims.get(request)?.get(namespace);
}

/**
 * Waits for a handler's response, for at most `afterMs` once its client has disconnected: otherwise a handler that
 * never answers would hold its claim forever.
 *
 * Rejects with the handler's error, and with ClaimAbandoned after that time.
 */
export async function abandonAfter<Sent>(afterMs: number, handling: Handling<Sent>): Promise<Handled<Sent>> {
  const { disconnected } = handling;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onDisconnected = () => {};
  const abandoned = new Promise<never>((_, reject) => {
    onDisconnected = () => {
      timer = setTimeout(() => {
        reject(new ClaimAbandoned(`A handler has not answered for ${afterMs} ms after its client left.`));
        handling.abandon();
      }, afterMs);
      // A process with nothing else to do has no handler to wait for. (In browsers timers are numbers without `unref`.)
      timer.unref?.();
    };
  });
  if (disconnected.aborted) onDisconnected();
  else disconnected.addEventListener("abort", onDisconnected);
  try {
    return await Promise.race([handling.handled, abandoned]);
  } finally {
    clearTimeout(timer);
    disconnected.removeEventListener("abort", onDisconnected);
  }
}
