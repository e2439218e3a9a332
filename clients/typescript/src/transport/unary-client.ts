import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client, Transport } from "@connectrpc/connect";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";

/**
 * The service's unary RPCs as a Connect client: one RPC per call, Connect's options and errors. For `BatchStream`, which
 * `Calls` uses by itself, make a client with Connect's `createClient` and a transport that supports streams.
 */
export type Api = Omit<Client<typeof IdempotencyService>, "batchStream">;

/**
 * Returns the RPCs of a transport. Each rejects with the error of `refusal`, if that returns one. Connect's own client supports
 * streams as well, and is five times as large.
 */
export function createApi(transport: Transport, refusal: () => Error | undefined = () => undefined): Api {
  const rpcs = IdempotencyService.methods
    .filter((method): method is DescMethodUnary & typeof method => method.methodKind === "unary")
    .map((method) => [method.localName, unary(transport, method, refusal)]);
  return Object.fromEntries(rpcs);
}

function unary(transport: Transport, method: DescMethodUnary, refusal: () => Error | undefined) {
  return async (input: MessageInitShape<typeof method.input>, options: CallOptions = {}) => {
    const refused = refusal();
    if (refused !== undefined) throw refused;
    const { signal, timeoutMs, headers, contextValues, onHeader, onTrailer } = options;
    const response = await transport.unary(method, signal, timeoutMs, headers, input, contextValues);
    onHeader?.(response.header);
    onTrailer?.(response.trailer);
    return response.message;
  };
}
