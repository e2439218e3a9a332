import {
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { Logger } from "pino";
import { endsWithin } from "../../core/background/ends-within.ts";
import type {
  CallOutcome,
  CallSpan,
  SpanAttributes,
  SpanIds,
  Tracing,
  TracingOptions,
} from "../../core/telemetry/tracing.ts";
import { createRareWarning, createReportingExporter } from "./reporting-exporter.ts";

/** Longer headers are not a trace context: W3C's `traceparent` has 55 characters, and `tracestate` may be cut at 512. */
const MAX_HEADER_LENGTH = 512;
/** A statement carries the operations of up to 256 calls. By default the SDK keeps this many links of a span. */
const MAX_LINKS = 128;

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
  const spans = new SpanFactory(provider.getTracer("onceward", version), options.database);
  return {
    startCall: (call) => spans.startCall(call),
    startItem: (item, batch) => spans.startItem(item, batch),
    startStatement: (statement, operations, calls = []) => spans.startStatement(statement, operations, calls),
    async close(limitMs) {
      if (!(await endsWithin(limitMs, provider.shutdown()))) log.warn("the last spans were not exported");
    },
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

/** Returns the resource of all spans. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come before our names. */
function resourceOf({ instanceId, version }: TracingOptions): Resource {
  const own = resourceFromAttributes({
    "service.name": "onceward",
    "service.version": version,
    "service.instance.id": instanceId,
  });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

class SpanFactory {
  readonly #propagator = new W3CTraceContextPropagator();
  readonly #tracer: Tracer;
  readonly #database: SpanAttributes;

  constructor(tracer: Tracer, database: SpanAttributes) {
    this.#tracer = tracer;
    this.#database = { "db.system.name": "postgresql", ...database };
  }

  startCall({ system, method, header }: Parameters<Tracing["startCall"]>[0]): CallSpan {
    const attributes = { "rpc.system.name": system, "rpc.method": method };
    return new RecordedCall(
      this.#tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, this.#contextOf(header)),
    );
  }

  startItem(
    { method, traceparent }: Parameters<Tracing["startItem"]>[0],
    batch: CallSpan | undefined,
  ): CallSpan | undefined {
    const parent = this.#contextOf((name) => (name === "traceparent" ? traceparent : undefined));
    const flags = trace.getSpanContext(parent)?.traceFlags ?? TraceFlags.NONE;
    if ((flags & TraceFlags.SAMPLED) === 0) return undefined;
    const links = batch?.isRecording ? [{ context: batch.ids }] : [];
    const attributes = { "rpc.system.name": "grpc", "rpc.method": method };
    const options = { kind: SpanKind.SERVER, attributes, links };
    return new RecordedCall(this.#tracer.startSpan(method, options, parent));
  }

  startStatement(
    statement: string,
    operations: number,
    calls: readonly CallSpan[],
  ): ReturnType<Tracing["startStatement"]> {
    const [first, ...others] = calls.filter(({ isRecording }) => isRecording).slice(0, MAX_LINKS + 1);
    if (first === undefined) return undefined;
    const attributes = {
      ...this.#database,
      "db.query.summary": statement,
      "onceward.operations": operations,
    };
    const links = others.map(({ ids }) => ({ context: ids }));
    const parent = trace.setSpanContext(ROOT_CONTEXT, first.ids);
    const span = this.#tracer.startSpan(statement, { kind: SpanKind.CLIENT, attributes, links }, parent);
    const ids = span.spanContext();
    for (const call of others) call.addLink(ids);
    return {
      end(error) {
        if (error !== undefined) {
          span.setAttribute("error.type", error.type);
          if (error.sqlState !== undefined) span.setAttribute("db.response.status_code", error.sqlState);
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      },
    };
  }

  /** Returns the context of a call's headers; the root context if they have none that is well-formed. */
  #contextOf(header: (name: string) => string | undefined) {
    return this.#propagator.extract(ROOT_CONTEXT, header, BOUNDED_HEADERS);
  }
}

/** Reads headers of a bounded length. */
const BOUNDED_HEADERS = {
  keys: () => [],
  get(header: (name: string) => string | undefined, name: string): string | undefined {
    const value = header(name);
    return value === undefined || value.length > MAX_HEADER_LENGTH ? undefined : value;
  },
};

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

  end({ code, reason }: CallOutcome): void {
    this.hasEnded = true;
    if (!this.isRecording) return;
    this.#span.setAttribute("rpc.response.status_code", code);
    if (reason !== undefined) this.#span.setAttribute("onceward.reason", reason);
    if (SERVER_FAILURES.has(code)) {
      this.#span.setAttribute("error.type", code);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}
