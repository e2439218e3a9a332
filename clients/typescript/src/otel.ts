/**
 * `@onceward/client/otel`: OpenTelemetry spans for `run`, `claim` and `complete`.
 *
 * ```ts
 * import { trace } from "@opentelemetry/api";
 * import { createOnceward } from "@onceward/client";
 * import { tracing } from "@onceward/client/otel";
 *
 * const onceward = createOnceward({ address, apiKey, trace: tracing(trace.getTracer("charges")) });
 * ```
 *
 * @module
 */

import { isSpanContextValid, type Span, type Tracer, trace } from "@opentelemetry/api";
import { OncewardError } from "./errors/errors.ts";
import type { Trace } from "./run/events.ts";

/** SpanStatusCode.ERROR */
const STATUS_ERROR = 2;

/**
 * Returns a `trace` option that makes spans with the tracer: `onceward.run` for the whole run, and within it
 * `onceward.claim`, the function's own spans, and `onceward.complete`.
 *
 * Attributes: `onceward.namespace`; of a run `onceward.outcome`, the type of its last event, and `onceward.attempt`;
 * of a failed span `error.type`, a reason or an error's name. Never keys, values or error messages.
 *
 * Every call carries the span that is active when it is made, as W3C trace context: a service that traces its calls makes its
 * spans children of it, also of those calls that travel in one batch.
 */
export function tracing(tracer: Tracer): Trace {
  const run: Trace = (name, attributes, work) =>
    tracer.startActiveSpan(`onceward.${name}`, { attributes }, async (span) => {
      try {
        return await work((added) => span.setAttributes(added));
      } catch (error) {
        markFailed(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
  return Object.assign(run, { traceparent: activeTraceparent });
}

/** https://www.w3.org/TR/trace-context/#traceparent-header */
function activeTraceparent(): string | undefined {
  const context = trace.getActiveSpan()?.spanContext();
  if (context === undefined || !isSpanContextValid(context)) return undefined;
  return `00-${context.traceId}-${context.spanId}-${context.traceFlags.toString(16).padStart(2, "0")}`;
}

function markFailed(span: Span, error: unknown): void {
  const type = error instanceof OncewardError ? error.reason : error instanceof Error ? error.name : "Error";
  span.setAttribute("error.type", type);
  span.setStatus({ code: STATUS_ERROR });
}
