import type { Answer, Call } from "../access/call.ts";
import { CATALOGUE, Refusal } from "../domain/refusal.ts";
import { ErrorReasonSchema } from "../gen/onceward/v1/errors_pb.ts";
import {
  type BatchRequest,
  type BatchRequestItem,
  type BatchResponse,
  type BatchResponseItem,
  IdempotencyService,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { codeName } from "../records/batch/batch-errors.ts";
import { activeCalls, type CallOutcome, type CallSpan, type Tracing } from "../telemetry/tracing.ts";
import { outcomeOfReply } from "./traced-pipeline.ts";

const INTERNAL: CallOutcome = { code: "INTERNAL" };

type BatchHandle = (request: BatchRequest, call: Call) => Answer<BatchResponse>;

/**
 * Wraps the handler of Batch: an item with a trace context of its own is a span in its trace, linked to the batch's span. The span
 * lasts as long as the batch, because the item is answered with it.
 */
export function traceBatch(handle: BatchHandle, tracing: Tracing): BatchHandle {
  return async (request, call) => {
    const [batch] = activeCalls.getStore() ?? [];
    batch?.setAttributes({ "onceward.batch.items": request.items.length });
    const spans = request.items.map((item) => startItem(item, tracing, batch));
    const endAll = (outcomeOf: (index: number) => CallOutcome) => {
      for (const [index, span] of spans.entries()) span?.end(outcomeOf(index));
    };
    try {
      const response = await handle(request, call);
      endAll((index) => outcomeOfItem(response.items[index]?.response));
      return response;
    } catch (error) {
      const outcome =
        error instanceof Refusal ? { code: CATALOGUE[error.reason], reason: error.reason } : INTERNAL;
      endAll(() => outcome);
      throw error;
    }
  };
}

function startItem(
  { request, traceparent }: BatchRequestItem,
  tracing: Tracing,
  batch: CallSpan | undefined,
): CallSpan | undefined {
  if (traceparent === "" || request.case === undefined) return undefined;
  const method = `${IdempotencyService.typeName}/${IdempotencyService.method[request.case].name}`;
  return tracing.startItem({ method, traceparent }, batch);
}

function outcomeOfItem(response: BatchResponseItem["response"] | undefined): CallOutcome {
  if (response?.case !== "error") return { code: "OK", outcome: outcomeOfReply(response?.value) };
  const { code, reason } = response.value;
  return { code: codeName(code), reason: ErrorReasonSchema.value[reason]?.localName };
}
