/** `@onceward/client/connect`: idempotency keys for servers and clients of Connect. */

import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, Interceptor, UnaryRequest } from "@connectrpc/connect";
import { checkFunction } from "./errors/violations.ts";
import { IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED } from "./keys/idempotency-key.ts";
import { connectFailures } from "./rpc/connect-failures.ts";
import { createCallGuard } from "./rpc/guard.ts";
import type { RpcOptions } from "./rpc/options.ts";
import { keyOfOutgoing, type OutgoingRpcOptions } from "./rpc/outgoing.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import { protobufCodec } from "./run/codec.ts";

export { formatIdempotencyKey } from "./keys/idempotency-key.ts";
export type { FailureDetail, RpcFailure } from "./rpc/failure.ts";
export type { RpcOptions } from "./rpc/options.ts";
export type { OutgoingRpcOptions } from "./rpc/outgoing.ts";

/** A call, as passed to the functions of `RpcOptions`. */
export interface UnaryCall<I extends DescMessage = DescMessage> {
  readonly request: MessageShape<I>;
  readonly context: HandlerContext;
}

/** The implementation of a unary method that gets its claim; undefined for a call that is not guarded. */
export type IdempotentImpl<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  context: HandlerContext,
  claim: Claim | undefined,
) => MessageInitShape<O> | Promise<MessageInitShape<O>>;

/**
 * Guards a unary method: one effect and one answer for all calls with one idempotency key, over all of Connect's
 * protocols.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client";
 * import { idempotentUnary } from "@onceward/client/connect";
 * import type { ConnectRouter } from "@connectrpc/connect";
 *
 * const onceward = createOnceward({ address: "http://localhost:50051", apiKey: process.env.ONCEWARD_API_KEY });
 *
 * export default (router: ConnectRouter) =>
 *   router.service(Charges, {
 *     createCharge: idempotentUnary(
 *       onceward,
 *       Charges.method.createCharge,
 *       { namespace: "charges", caller: ({ context }) => context.values.get(accountKey).id },
 *       async (request, context, claim) =>
 *         provider.charge(request, { idempotencyKey: claim?.deriveKey("provider") }),
 *     ),
 *   });
 * ```
 *
 * - The key comes in the header `idempotency-key`, or else in the request's field `request_id` (AIP-155), and counts
 *   per caller and method.
 * - The first call runs the implementation; its response message is stored before it is sent. Every later call with
 *   the key gets that message, with the header `idempotency-replayed: true`. Other headers and trailers are only sent
 *   the first time.
 * - Errors with a code that `stores` accepts are stored as well, with their details; any other error releases the
 *   claim, so that the next attempt runs, unless the code is of a call that was cut. An implementation that can't know whether it had its effect throws an
 *   OutcomeUnknownError, or an error with it as its `cause`: the caller gets that error, and the claim is left to the policy.
 * - While the first call runs, another call with the key fails with ABORTED and RetryInfo, or waits (`waitMs`). A
 *   call with the key of a different request, or of a call that may have had its effect, fails with
 *   FAILED_PRECONDITION; a call whose stored response is no longer available with ALREADY_EXISTS. If the service is
 *   unreachable, nothing runs: UNAVAILABLE with RetryInfo. Each has an ErrorInfo of the domain `onceward` with the
 *   reason. An error that does not concern the caller, such as a bad credential, is the `cause` of an INTERNAL error.
 * - Streams can't be replayed, so there is no wrapper for them. This is not an interceptor, because an interceptor
 *   that answers instead of the implementation can't set the headers that Connect's protocols need.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function idempotentUnary<I extends DescMessage, O extends DescMessage>(
  onceward: Runner,
  method: DescMethodUnary<I, O>,
  options: RpcOptions<UnaryCall<I>>,
  implementation: IdempotentImpl<I, O>,
): (request: MessageShape<I>, context: HandlerContext) => Promise<MessageInitShape<O>> {
  checkFunction("implementation", implementation);
  const guard = createCallGuard(onceward, options, connectFailures);
  const codec = protobufCodec(method.output);
  return async (request, context) => {
    const call = {
      native: { request, context },
      procedure: procedureOf(method),
      key: context.requestHeader.get(IDEMPOTENCY_KEY) ?? requestId(method.input, request),
      fingerprint: () => fingerprintMessage(method.input, request),
      codec,
    };
    const answer = await guard(call, async (claim) => {
      const message = create(method.output, await implementation(request, context, claim));
      return { message, sent: message };
    });
    switch (answer.kind) {
      case "unguarded":
        return await implementation(request, context, undefined);
      case "handled":
        return answer.sent;
      case "replayed":
        context.responseHeader.set(IDEMPOTENCY_REPLAYED, "true");
        return answer.message;
    }
  };
}

/**
 * Returns a client interceptor that sends the current claim's key for each unary call that needs one:
 * `claim.deriveKey("/shop.v1.Charges/Create")`, the same in all languages. So a repeat of the call has the same key, also in the next
 * attempt after a crash, and the next service answers it without a second effect.
 *
 * ```ts
 * const transport = createConnectTransport({ baseUrl, httpVersion: "2", interceptors: [idempotencyKeys()] });
 * ```
 *
 * - Calls of one procedure under one claim are one operation, unless `name` tells them apart: the next service refuses the second one if
 *   its request differs (FINGERPRINT_MISMATCH), and else answers it with the first one's response.
 * - Methods with an `idempotency_level` get no key, nor do calls outside of a guarded function or after its end, unless
 *   `withoutClaim` says so. Browsers and edge runtimes have no current claim.
 * - A key of your own is kept: `client.create(request, { headers: { "idempotency-key": formatIdempotencyKey(orderId) } })`.
 */
export function idempotencyKeys(options: OutgoingRpcOptions<UnaryRequest> = {}): Interceptor {
  return (next) => (call) => {
    const needed = call.method.idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN;
    if (!call.stream && needed && !call.header.has(IDEMPOTENCY_KEY)) {
      const key = keyOfOutgoing(procedureOf(call.method), call, options);
      if (key !== undefined) call.header.set(IDEMPOTENCY_KEY, key);
    }
    return next(call);
  };
}

function procedureOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

/** Returns the text field `request_id` (AIP-155); undefined if there is none, or it is empty. */
function requestId<I extends DescMessage>(schema: I, message: MessageShape<I>): string | undefined {
  const field = schema.fields.find(({ name }) => name === "request_id");
  if (field === undefined) return undefined;
  const value: unknown = Reflect.get(message, field.localName);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * Returns the message as JSON, whose members can be sorted: clients in Go write a map's entries in a different order
 * on every attempt. A google.protobuf.Any of an unknown type has no JSON; then returns the message's bytes.
 */
function fingerprintMessage<I extends DescMessage>(schema: I, message: MessageShape<I>): unknown {
  try {
    return toJson(schema, message);
  } catch {
    return base64Encode(toBinary(schema, message));
  }
}
