import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { runBatch } from "./batch.ts";
import { refusal, toConnectError } from "./refusal.ts";
import { type CallContext, type ServiceState, SingleCalls } from "./single-calls.ts";

/** IdempotencyService without BatchStream, which only connections over a network use. */
export type UnaryService = Omit<ServiceImpl<typeof IdempotencyService>, "batchStream">;

/** Returns IdempotencyService for one tenant, in memory. `idempotency.proto` says what each RPC guarantees. */
export function createService(state: ServiceState): UnaryService {
  const single = new SingleCalls(state);
  return {
    claim: rpc((request, context) => single.claim(request, context)),
    complete: rpc((request) => single.complete(request)),
    release: rpc((request) => single.release(request)),
    extendLease: rpc((request) => single.extendLease(request)),
    lookup: rpc((request) => single.lookup(request)),
    batch: rpc((request, context) => runBatch(single, request, context)),
  };
}

/** Wraps an RPC's handler: a call past its deadline has no effect, and a refusal becomes Connect's error. */
function rpc<Request extends Message, Response extends Message>(
  handle: (request: Request, context: CallContext) => Promise<Response>,
): (request: Request, context: HandlerContext) => Promise<Response> {
  return async (request, context) => {
    try {
      const leftMs = context.timeoutMs() ?? Number.POSITIVE_INFINITY;
      if (leftMs <= 0) {
        throw refusal("DEADLINE_EXCEEDED", "The deadline passed before the database was reached.");
      }
      return await handle(request, { signal: context.signal, deadlineMs: performance.now() + leftMs });
    } catch (error) {
      throw toConnectError(error);
    }
  };
}
