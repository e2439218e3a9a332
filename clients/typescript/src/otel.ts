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

import type { Span, Tracer } from "@opentelemetry/api";
import { OncewardError } from "./errors/errors.ts";
import type { Trace } from "./run/events.ts";

/** SpanStatusCode.ERROR, as a number so that only types are imported. */
const STATUS_ERROR = 2;

/**
 * Returns a `trace` option that makes spans with the tracer: `onceward.run` for the whole run, and within it
 * `onceward.claim`, the function's own spans, and `onceward.complete`.
 *
 * Attributes: `onceward.namespace`; of a run `onceward.outcome`, the type of its last event, and `onceward.attempt`;
 * of a failed span `error.type`, a reason or an error's name. Never keys, values or error messages.
 */
export function tracing(tracer: Tracer): Trace {
  return (name, attributes, work) =>
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
}

function markFailed(span: Span, error: unknown): void {
  const type = error instanceof OncewardError ? error.reason : error instanceof Error ? error.name : "Error";
  span.setAttribute("error.type", type);
  span.setStatus({ code: STATUS_ERROR });
}
