import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client, Transport } from "@connectrpc/connect";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";

/**
 * The service's unary RPCs as a Connect client: one RPC per call, Connect's options and errors. For `BatchStream`, which
 * `Calls` uses internally, make a client with Connect's `createClient` and a transport that supports streams.
 */
export type Api = Omit<Client<typeof IdempotencyService>, "batchStream">;

/** Returns the RPCs of a transport. Connect's own client supports streams as well, and is five times as large. */
export function createApi(transport: Transport): Api {
  const rpcs = IdempotencyService.methods
    .filter((method): method is DescMethodUnary & typeof method => method.methodKind === "unary")
    .map((method) => [method.localName, unary(transport, method)]);
  return Object.fromEntries(rpcs);
}

/** Closes RPCs: with this reason, those in flight reject at once, whenever the transport settles them, and so does any further one. */
export type CloseApi = (reason: Error) => void;

type AnyRpc = (input: never, options?: CallOptions) => Promise<unknown>;

/** Returns the same RPCs, and the function that closes them. */
export function closable(api: Api): readonly [api: Api, close: CloseApi] {
  const inFlight = new Set<(reason: Error) => void>();
  let closed: Error | undefined;
  const rpcs = Object.entries<AnyRpc>(api).map(([name, rpc]) => [
    name,
    (...call: Parameters<AnyRpc>) =>
      new Promise((resolve, reject) => {
        if (closed !== undefined) throw closed;
        inFlight.add(reject);
        void rpc(...call)
          .then(resolve, reject)
          .finally(() => inFlight.delete(reject));
      }),
  ]);
  const close: CloseApi = (reason) => {
    closed = reason;
    for (const end of inFlight) end(reason);
  };
  return [Object.fromEntries(rpcs), close];
}

function unary(transport: Transport, method: DescMethodUnary) {
  return async (input: MessageInitShape<typeof method.input>, options: CallOptions = {}) => {
    const { signal, timeoutMs, headers, contextValues, onHeader, onTrailer } = options;
    const response = await transport.unary(method, signal, timeoutMs, headers, input, contextValues);
    onHeader?.(response.header);
    onTrailer?.(response.trailer);
    return response.message;
  };
}
