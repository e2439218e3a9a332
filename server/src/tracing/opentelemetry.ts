import {
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { ExportResultCode, W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { Logger } from "pino";
import { endsWithin } from "../background/ends-within.ts";
import type {
  CallOutcome,
  CallSpan,
  SpanAttributes,
  SpanIds,
  TracedCall,
  Tracing,
  TracingOptions,
} from "../telemetry/tracing.ts";

/** Longer headers are not a trace context: W3C's `traceparent` has 55 characters, and `tracestate` may be cut at 512. */
const MAX_HEADER_LENGTH = 512;
/** A statement carries the operations of up to 256 calls. By default the SDK keeps this many links of a span. */
const MAX_LINKS = 128;
/** While a collector is down every export fails. */
const WARNING_INTERVAL_MS = 60_000;
/** A message of the SDK may contain an answer of the collector, of any length. */
export const MAX_PROBLEM_LENGTH = 200;

/** Codes that are failures of the server: https://opentelemetry.io/docs/specs/semconv/rpc/grpc/. */
const SERVER_FAILURES = new Set([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
]);

/**
 * Makes spans with OpenTelemetry's SDK, and exports them by OTLP over HTTP. The SDK reads `OTEL_*` from the environment: endpoint,
 * headers, timeout, sampler, limits, the queue's size, and the resource.
 *
 * Names and attributes follow the semantic conventions 1.45 for RPCs and databases.
 *
 * This module is imported only while tracing is on, because it loads the SDK.
 */
export function openTracing(options: TracingOptions): Tracing {
  const { log, version } = options;
  logProblemsOfSdk(log);
  const exporter = createReportingExporter(new OTLPTraceExporter(), options);
  const provider = new BasicTracerProvider({
    resource: resourceOf(options),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer("onceward", version);
  const database = { "db.system.name": "postgresql", ...options.database };
  return {
    startCall({ system, method, header }) {
      const attributes = { "rpc.system.name": system, "rpc.method": method };
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, contextOf(header));
      return new RecordedCall(span);
    },

    startItem({ method, traceparent }, batch) {
      const parent = contextOf((name) => (name === "traceparent" ? traceparent : undefined));
      const flags = trace.getSpanContext(parent)?.traceFlags ?? TraceFlags.NONE;
      if ((flags & TraceFlags.SAMPLED) === 0) return undefined;
      const links = batch?.isRecording ? [{ context: batch.ids }] : [];
      const attributes = { "rpc.system.name": "grpc", "rpc.method": method };
      return new RecordedCall(tracer.startSpan(method, { kind: SpanKind.SERVER, attributes, links }, parent));
    },

    startStatement(statement, operations, calls = []) {
      const [first, ...others] = calls.filter(({ isRecording }) => isRecording).slice(0, MAX_LINKS + 1);
      if (first === undefined) return undefined;
      const attributes = { ...database, "db.query.summary": statement, "onceward.operations": operations };
      const links = others.map(({ ids }) => ({ context: ids }));
      const parent = trace.setSpanContext(ROOT_CONTEXT, first.ids);
      const span = tracer.startSpan(statement, { kind: SpanKind.CLIENT, attributes, links }, parent);
      const ids = span.spanContext();
      for (const call of others) call.addLink(ids);
      return {
        end(error) {
          if (error?.sqlState !== undefined) span.setAttribute("db.response.status_code", error.sqlState);
          if (error !== undefined) markFailed(span, error.type);
          span.end();
        },
      };
    },

    async close(limitMs) {
      if (!(await endsWithin(limitMs, provider.shutdown()))) log.warn("the last spans were not exported");
    },
  };
}

/**
 * Wraps an exporter: its failures are counted, and logged at most once a minute. The SDK gets every export reported as successful,
 * because it would only log the failure, each time and with the collector's answer.
 */
export function createReportingExporter(
  exporter: SpanExporter,
  { log, onExportFailed }: Pick<TracingOptions, "log" | "onExportFailed">,
): SpanExporter {
  const warn = createRareWarning(log, "exporting spans failed; they are dropped");
  return {
    export(spans, onResult) {
      exporter.export(spans, ({ code, error }) => {
        if (code !== ExportResultCode.SUCCESS) {
          onExportFailed();
          warn(error?.message ?? "no reason given");
        }
        onResult({ code: ExportResultCode.SUCCESS });
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => await exporter.forceFlush?.(),
  };
}

/** Returns a function that logs a problem, at most once a minute, with the number of problems since the last line. */
function createRareWarning(log: Logger, message: string): (problem: string) => void {
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  let problems = 0;
  return (problem) => {
    problems++;
    if (performance.now() - warnedAtMs < WARNING_INTERVAL_MS) return;
    log.warn({ problem: problem.slice(0, MAX_PROBLEM_LENGTH), problems }, message);
    warnedAtMs = performance.now();
    problems = 0;
  };
}

/** Logs problems such as an unknown sampler or a full queue. The SDK has one logger for the process. */
function logProblemsOfSdk(log: Logger): void {
  const warn = createRareWarning(log, "OpenTelemetry reports a problem");
  const ignore = () => {};
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** Returns the resource of all spans and metrics. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come before our names. */
export function resourceOf({
  instanceId,
  version,
}: Pick<TracingOptions, "instanceId" | "version">): Resource {
  const own = resourceFromAttributes({
    "service.name": "onceward",
    "service.version": version,
    "service.instance.id": instanceId,
  });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

const PROPAGATOR = new W3CTraceContextPropagator();

/** Reads headers of a bounded length. */
const BOUNDED_HEADERS = {
  keys: () => [],
  get(header: TracedCall["header"], name: string): string | undefined {
    const value = header(name);
    return value === undefined || value.length > MAX_HEADER_LENGTH ? undefined : value;
  },
};

/** Returns the context of a call's headers; the root context if they have none that is well-formed. */
function contextOf(header: TracedCall["header"]) {
  return PROPAGATOR.extract(ROOT_CONTEXT, header, BOUNDED_HEADERS);
}

function markFailed(span: Span, type: string): void {
  span.setAttribute("error.type", type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

class RecordedCall implements CallSpan {
  readonly #span: Span;
  hasEnded = false;

  constructor(span: Span) {
    this.#span = span;
  }

  get ids(): SpanContext {
    return this.#span.spanContext();
  }

  get isRecording(): boolean {
    return this.#span.isRecording();
  }

  setAttributes(attributes: SpanAttributes): void {
    if (this.isRecording) this.#span.setAttributes(attributes);
  }

  addEvent(name: string, attributes?: SpanAttributes): void {
    if (this.isRecording) this.#span.addEvent(name, attributes);
  }

  addLink(ids: SpanIds): void {
    if (this.isRecording) this.#span.addLink({ context: ids });
  }

  end({ code, outcome, reason }: CallOutcome): void {
    this.hasEnded = true;
    if (!this.isRecording) return;
    this.#span.setAttribute("rpc.response.status_code", code);
    if (outcome !== undefined) this.#span.setAttribute("onceward.outcome", outcome);
    if (reason !== undefined) this.#span.setAttribute("onceward.reason", reason);
    if (SERVER_FAILURES.has(code)) markFailed(this.#span, code);
    this.#span.end();
  }
}
