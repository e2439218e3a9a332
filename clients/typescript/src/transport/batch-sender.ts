import { InvalidRequestError } from "../errors/catalogue.ts";
import { OncewardError } from "../errors/errors.ts";
import { errorFromCall, errorFromItem, isAboutContent } from "../errors/mapping.ts";
import type {
  BatchResponseItem,
  ClaimResponse,
  CompleteResponse,
  ExtendLeaseResponse,
  LookupResponse,
  ReleaseResponse,
} from "../gen/onceward/v1/idempotency_pb.ts";
import type { BatchedRequest } from "../wire/request-size.ts";
import type { Pending } from "./coalescer.ts";
import type { Api } from "./unary-client.ts";

/**
 * The timeout of one RPC. A replica that has not answered by then is stuck or unreachable, and another attempt is
 * better.
 */
export const ATTEMPT_TIMEOUT_MS = 5000;

/** Few beside a batch of up to 1,000 calls, and enough to find the one call that made the batch invalid soon. */
const MAX_ALONE_AT_ONCE = 16;

/** The response of each kind of call. */
export interface Responses {
  readonly claim: ClaimResponse;
  readonly complete: CompleteResponse;
  readonly release: ReleaseResponse;
  readonly extendLease: ExtendLeaseResponse;
  readonly lookup: LookupResponse;
}

/** The response of any call. */
export type Reply = Responses[keyof Responses];

/**
 * Sends the calls as one Batch and settles each: with its response, or with the error it would have failed with
 * outside a batch. Calls that a batch can't carry are repeated one by one: their reply did not fit, or an item made
 * the batch invalid.
 */
export async function sendBatch(api: Api, batch: readonly Pending<Reply>[]): Promise<void> {
  try {
    const common = commonTraceparent(batch);
    const items = batch.map(({ request, traceparent }) =>
      traceparent === common || traceparent === undefined ? { request } : { request, traceparent },
    );
    const options = { timeoutMs: ATTEMPT_TIMEOUT_MS, ...traceOptions(common) };
    const { items: replies } = await api.batch({ items }, options);
    batch.forEach((pending, index) => {
      settle(api, pending, replies[index]?.response);
    });
  } catch (cause) {
    const error = errorFromCall(cause);
    if (batch.length > 1 && isAboutContent(error)) await sendOneByOne(api, batch);
    else for (const { reject } of batch) reject(error);
  }
}

/** Makes each call alone, a few at a time. */
async function sendOneByOne(api: Api, batch: readonly Pending<Reply>[]): Promise<void> {
  const calls = batch.values();
  const work = async () => {
    // The workers share the iterator: each takes the next call.
    for (const call of calls) await sendAlone(api, call);
  };
  await Promise.all(Array.from({ length: MAX_ALONE_AT_ONCE }, work));
}

/** The last digit of a trace context's flags is odd. */
const SAMPLED = /[13579bdf]$/;

/** Returns the trace context of the batch itself: that of its first sampled item, or of its first item that has one. */
function commonTraceparent(batch: readonly Pending<Reply>[]): string | undefined {
  const sampled = batch.find(({ traceparent }) => traceparent !== undefined && SAMPLED.test(traceparent));
  return (sampled ?? batch.find(({ traceparent }) => traceparent !== undefined))?.traceparent;
}

/** Returns the options with which a call carries a trace context, if there is one. */
export function traceOptions(traceparent: string | undefined): {
  readonly headers?: { traceparent: string };
} {
  return traceparent === undefined ? {} : { headers: { traceparent } };
}

function settle(
  api: Api,
  pending: Pending<Reply>,
  response: BatchResponseItem["response"] | undefined,
): void {
  const { case: called } = pending.request;
  if (response === undefined) {
    pending.reject(new OncewardError("INTERNAL", "The batch was answered with too few items."));
  } else if (response.case === "error") {
    const error = errorFromItem(response.value);
    if (error.reason === "RESPONSE_TOO_LARGE") void sendAlone(api, pending);
    else pending.reject(error);
  } else if (response.case === undefined || response.case !== called) {
    const answered = response.case ?? "a call unknown here";
    pending.reject(new OncewardError("INTERNAL", `A ${called} was answered as if it were ${answered}.`));
  } else {
    pending.resolve(response.value);
  }
}

function sendAlone(api: Api, { request, traceparent, resolve, reject }: Pending<Reply>): Promise<void> {
  return callAlone(api, request, traceparent).then(resolve, reject);
}

/** Makes a call with its own RPC. @throws OncewardError, also for an error of the network. */
export async function callAlone(
  api: Api,
  request: BatchedRequest,
  traceparent: string | undefined,
  timeoutMs = ATTEMPT_TIMEOUT_MS,
): Promise<Reply> {
  try {
    return await send(api, request, { timeoutMs, ...traceOptions(traceparent) });
  } catch (cause) {
    throw errorFromCall(cause);
  }
}

function send(api: Api, request: BatchedRequest, options: Parameters<Api["claim"]>[1]): Promise<Reply> {
  switch (request.case) {
    case "claim":
      return api.claim(request.value, options);
    case "complete":
      return api.complete(request.value, options);
    case "release":
      return api.release(request.value, options);
    case "extendLease":
      return api.extendLease(request.value, options);
    case "lookup":
      return api.lookup(request.value, options);
    case undefined:
      throw new InvalidRequestError("The item holds no request.");
  }
}
