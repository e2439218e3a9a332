/** `@onceward/client/grpc`: idempotency keys for servers and clients of @grpc/grpc-js. */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import {
  type handleUnaryCall,
  InterceptingCall,
  type Interceptor,
  type InterceptorOptions,
  Metadata,
  type MethodDefinition,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { OncewardError } from "./errors/errors.ts";
import { checkFunction } from "./errors/violations.ts";
import { IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED } from "./keys/idempotency-key.ts";
import { grpcFailures } from "./rpc/grpc-failures.ts";
import { createCallGuard, type HandledCall } from "./rpc/guard.ts";
import type { RpcOptions } from "./rpc/options.ts";
import { keyOfOutgoing, type OutgoingRpcOptions } from "./rpc/outgoing.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import type { Codec } from "./run/codec.ts";

export { formatIdempotencyKey } from "./keys/idempotency-key.ts";
export type { FailureDetail, RpcFailure } from "./rpc/failure.ts";
export type { RpcOptions } from "./rpc/options.ts";
export type { OutgoingRpcOptions } from "./rpc/outgoing.ts";

/** A unary handler that gets its claim; undefined for a call that is not guarded. */
export type IdempotentHandler<Request, Response> = (
  call: ServerUnaryCall<Request, Response>,
  callback: sendUnaryData<Response>,
  claim: Claim | undefined,
) => void;

/**
 * Guards a unary handler: one effect and one answer for all calls with one idempotency key.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client";
 * import { idempotentUnary } from "@onceward/client/grpc";
 *
 * const onceward = createOnceward({ address: "http://localhost:50051", apiKey: process.env.ONCEWARD_API_KEY });
 *
 * server.addService(ChargesService, {
 *   createCharge: idempotentUnary(
 *     onceward,
 *     ChargesService.createCharge,
 *     { namespace: "charges", caller: (call) => accountOf(call.metadata) },
 *     (call, callback, claim) => {
 *       provider.charge(call.request, { idempotencyKey: claim?.deriveKey("provider") }).then(
 *         (charge) => callback(null, charge),
 *         callback,
 *       );
 *     },
 *   ),
 * });
 * ```
 *
 * - The key comes in the metadata `idempotency-key`, or from the option `key`, such as AIP-155's `request_id`: `key:
 *   (call) => call.request.requestId || undefined`. It counts per caller and method.
 * - The first call runs the handler; its response message is stored before it is sent. Every later call with the key
 *   gets that message, with the metadata `idempotency-replayed: true`. Other metadata is only sent the first time.
 * - Errors with a code that `stores` accepts are stored as well, with the details of their status; any other error
 *   releases the claim, so that the next attempt runs, unless the code is of a call that was cut. A handler that can't know whether
 *   it had its effect passes an OutcomeUnknownError, or an error with it as its `cause`: the caller gets that error, and the claim is left
 *   to the policy.
 * - Refused calls fail as with `idempotentUnary` in `@onceward/client/connect`.
 * - The fingerprint is of the request as the method's definition serializes it. If clients write a map's entries in a
 *   different order on every attempt, as clients in Go do, set `fingerprint`.
 * - Streaming calls can't be replayed, so there is no wrapper for them.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function idempotentUnary<Request, Response>(
  onceward: Runner,
  method: MethodDefinition<Request, Response>,
  options: RpcOptions<ServerUnaryCall<Request, Response>>,
  handler: IdempotentHandler<Request, Response>,
): handleUnaryCall<Request, Response> {
  checkFunction("handler", handler);
  const guard = createCallGuard(onceward, options, grpcFailures);
  const codec: Codec<Response> = {
    encode: (message) => ({
      payload: method.responseSerialize(message),
      contentType: "application/x-protobuf",
    }),
    decode: ({ payload }) => method.responseDeserialize(Buffer.from(payload)),
  };
  return (call, callback) => {
    const guarded = {
      native: call,
      procedure: method.path,
      key: call.metadata.get(IDEMPOTENCY_KEY)[0]?.toString(),
      fingerprint: () => createHash("sha256").update(method.requestSerialize(call.request)).digest(),
      codec,
    };
    const answered = guard(guarded, (claim) => handled(handler, call, claim));
    const send: sendUnaryData<Response> = (error, ...answer) => callback(sendableError(error), ...answer);
    answered.then(
      (answer) => {
        switch (answer.kind) {
          case "unguarded":
            return handler(call, send, undefined);
          case "handled": {
            const { value, trailer, flags } = answer.sent;
            return send(null, value, trailer, flags);
          }
          case "replayed": {
            const marked = new Metadata();
            marked.set(IDEMPOTENCY_REPLAYED, "true");
            call.sendMetadata(marked);
            return send(null, answer.message);
          }
        }
      },
      (error) => send(error),
    );
  };
}

/**
 * Returns an error that grpc-js can send. The code and metadata of an OncewardError belong to a run within the
 * handler, not to the call, and grpc-js throws for metadata of another class than its own.
 */
function sendableError(error: Parameters<sendUnaryData<unknown>>[0]): typeof error {
  if (!(error instanceof OncewardError)) return error;
  return { code: status.INTERNAL, details: "The call failed.", cause: error };
}

/** The arguments that a handler passes to its callback. */
interface Sent<Response> {
  readonly value: Response;
  readonly trailer: Metadata | undefined;
  readonly flags: number | undefined;
}

function handled<Request, Response>(
  handler: IdempotentHandler<Request, Response>,
  call: ServerUnaryCall<Request, Response>,
  claim: Claim,
): Promise<HandledCall<Response, Sent<Response>>> {
  return new Promise((resolve, reject) => {
    const settle: sendUnaryData<Response> = (error, value, trailer, flags) => {
      if (error !== null) reject(error);
      else if (value !== undefined && value !== null)
        resolve({ message: value, sent: { value, trailer, flags } });
      else reject({ code: status.INTERNAL, details: "The handler's response is missing." });
    };
    handler(call, settle, claim);
  });
}

/**
 * Returns a client interceptor that sends the current claim's key for each unary call: `claim.deriveKey("/shop.v1.Charges/Create")`.
 *
 * ```ts
 * const client = new ChargesClient(address, credentials, { interceptors: [idempotencyKeys()] });
 * ```
 *
 * What it promises is that of `idempotencyKeys` in `@onceward/client/connect`. A definition that `@grpc/proto-loader` made says whether a
 * method is idempotent, and so needs no key; generated ones do not, so that each unary call gets one. A key of your own is kept:
 * `metadata.set("idempotency-key", formatIdempotencyKey(orderId))`. `name` may be that of one call, whose options have the interceptor.
 */
export function idempotencyKeys(outgoing: OutgoingRpcOptions<InterceptorOptions> = {}): Interceptor {
  return (options, nextCall) => {
    const method = options.method_definition;
    // Now, because a call may be sent after its caller's function has ended.
    const key = needsKey(method) ? keyOfOutgoing(method.path, options, outgoing) : undefined;
    return new InterceptingCall(nextCall(options), {
      start(metadata, listener, next) {
        if (key === undefined || metadata.get(IDEMPOTENCY_KEY).length > 0) return next(metadata, listener);
        // Cloned, because the caller may use its metadata for many calls.
        const keyed = metadata.clone();
        keyed.set(IDEMPOTENCY_KEY, key);
        next(keyed, listener);
      },
    });
  };
}

/** The options of a method, as `@grpc/proto-loader` adds them to its definition. */
interface LoadedMethod {
  readonly options?: { readonly idempotency_level?: string };
}

function needsKey(method: InterceptorOptions["method_definition"] & LoadedMethod): boolean {
  const { requestStream, responseStream, options } = method;
  return !requestStream && !responseStream && (options?.idempotency_level ?? UNKNOWN_LEVEL) === UNKNOWN_LEVEL;
}

const UNKNOWN_LEVEL = "IDEMPOTENCY_UNKNOWN";
