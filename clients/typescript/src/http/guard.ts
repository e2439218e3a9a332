import { base64Url } from "../base64-url.ts";
import { callerOf } from "../caller.ts";
import { fingerprintOf } from "../fingerprint.ts";
import { guardedRun } from "../guarded-run.ts";
import type { Claim } from "../held-claim.ts";
import { IDEMPOTENCY_REPLAYED, parseIdempotencyKey } from "../idempotency-key.ts";
import { joinKey } from "../join-key.ts";
import type { Runner } from "../runner.ts";
import { sha256 } from "../sha256.ts";
import { type HttpOptions, type HttpPolicy, httpPolicy } from "./options.ts";
import { problemOf, problemResponse } from "./problems.ts";
import { type Headers, pickHeaders, responseCodec, type WholeResponse } from "./whole-response.ts";

/** A request, whatever framework it came through. */
export interface GuardedRequest<Native> {
  readonly native: Native;
  readonly method: string;
  /** The pattern that its route has, such as `/charges/:id/refunds`; its path where there are no patterns. */
  readonly route: string;
  readonly path: string;
  /** As it was sent, with its question mark; empty if there is none. */
  readonly query: string;
  /** The Idempotency-Key header. */
  readonly key: string | undefined;
  /** Bytes, or what a body parser made of them. Only asked for if it is needed. */
  readonly body: () => unknown;
}

/** What a handler answered. */
export interface Handled<Sent> {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined if it is larger than any policy takes. */
  readonly body: Uint8Array | undefined;
  /** The response as the framework sends it. */
  readonly sent: Sent;
}

/** What a handler rejects with when its response will never be whole: the claim is released. */
export class ResponseCut extends Error {
  override readonly name = "ResponseCut";

  constructor() {
    super("the response was cut short");
  }
}

/**
 * What the request is answered with, where the handler was not called:
 *
 * - `unguarded`: it is to be called, under no claim.
 * - `answered`: this response, instead of it: a replay, or a problem.
 */
export type NotHandled =
  | { readonly kind: "unguarded" }
  | { readonly kind: "answered"; readonly response: WholeResponse };

/** What the request is answered with; `handled`: the handler's response, as it is. */
export type Answer<Sent> = NotHandled | { readonly kind: "handled"; readonly sent: Sent };

/**
 * Answers a request, and calls the handler unless its operation was done before. The handler's promise resolves once its
 * response is whole.
 *
 * Rejects with what the handler rejects with, or with an OncewardError that is the API owner's to see; then nothing ran.
 */
export type Guard<Native> = <Sent>(
  request: GuardedRequest<Native>,
  handle: (claim: Claim) => Promise<Handled<Sent>>,
) => Promise<Answer<Sent>>;

/** The handler's response is no outcome; thrown so that the claim is released. */
class NotStored extends Error {}

/** The guard that all HTTP adapters are made of. @throws TypeError for an option that can't be meant. */
export function createGuard<Native>(onceward: Runner, options: HttpOptions<Native>): Guard<Native> {
  const policy = httpPolicy(options);
  return async (request, handle) => {
    if (!policy.methods.has(request.method)) return { kind: "unguarded" };
    if (request.key === undefined) {
      return policy.required ? refused(problemResponse("key-missing")) : { kind: "unguarded" };
    }
    const key = parseIdempotencyKey(request.key);
    if (key === undefined) return refused(problemResponse("key-malformed"));
    const fingerprint = await fingerprintRequest(policy, request);
    if (fingerprint === undefined) return refused(problemResponse("request-unreadable"));

    const operation = {
      ...policy.run,
      key: joinKey(request.method, request.route, callerOf(policy.caller, request.native), key),
      fingerprint,
      codec: responseCodec,
    };
    const run = await guardedRun(onceward, operation, handle, (outcome) => outcomeOf(policy, outcome));
    switch (run.kind) {
      case "ran":
        if (run.outcome.status === "rejected") throw run.outcome.reason;
        return { kind: "handled", sent: run.outcome.value.sent };
      case "replayed":
        return replay(run.value);
      case "refused": {
        const problem = problemOf(run.error);
        if (problem === undefined) throw run.error;
        return refused(problem);
      }
    }
  };
}

/** What is stored of a response. @throws what the handler threw, and NotStored. */
function outcomeOf<Native>(
  { stores, replayHeaders }: HttpPolicy<Native>,
  outcome: PromiseSettledResult<Handled<unknown>>,
): WholeResponse {
  if (outcome.status === "rejected") throw outcome.reason;
  const { status, headers, body } = outcome.value;
  if (!stores(status)) throw new NotStored(`HTTP ${status}`);
  return { status, headers: pickHeaders(headers, replayHeaders), body };
}

function refused(response: WholeResponse): Answer<never> {
  return { kind: "answered", response };
}

function replay({ status, headers, body }: WholeResponse): Answer<never> {
  const marked = { ...headers, [IDEMPOTENCY_REPLAYED]: "true" };
  return { kind: "answered", response: { status, headers: marked, body } };
}

/** Undefined if the body is no well-formed JSON: texts with lone surrogates can't be told from each other as UTF-8. */
async function fingerprintRequest<Native>(
  { fingerprint }: HttpPolicy<Native>,
  { native, method, path, query, body }: GuardedRequest<Native>,
): Promise<Uint8Array | undefined> {
  if (fingerprint !== undefined) return fingerprintOf(fingerprint(native));
  const content = await body();
  const hashed = content instanceof Uint8Array ? base64Url(sha256(content)) : content;
  try {
    return fingerprintOf({ method, path, query, body: hashed ?? null });
  } catch {
    return undefined;
  }
}
