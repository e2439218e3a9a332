import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client, Transport } from "@connectrpc/connect";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";

/**
 * The service's unary RPCs as a Connect client: one RPC per call, Connect's options and errors. For `BatchStream`, which
 * `Calls` uses by itself, make a client with Connect's `createClient` and a transport that supports streams.
 */
export type Api = Omit<Client<typeof IdempotencyService>, "batchStream">;

/** Returns the RPCs of a transport. Connect's own client supports streams as well, and is five times as large. */
export function createApi(transport: Transport): Api {
  const rpcs = IdempotencyService.methods
    .filter((method): method is DescMethodUnary & typeof method => method.methodKind === "unary")
    .map((method) => [method.localName, unary(transport, method)]);
  return Object.fromEntries(rpcs);
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
