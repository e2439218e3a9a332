import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { runBatch } from "./batch.ts";
import { refusal, toConnectError } from "./refusal.ts";
import { type CallContext, type ServiceState, SingleCalls } from "./single-calls.ts";

/** Without the stream of batches, which is for connections over a network. */
export type UnaryService = Omit<ServiceImpl<typeof IdempotencyService>, "batchStream">;

/** IdempotencyService for one tenant, in memory: what each RPC promises stands in `idempotency.proto`. */
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

/** One RPC: a call that is past its deadline has no effect, and a refusal becomes connect's error. */
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
