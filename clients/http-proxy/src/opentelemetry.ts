import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { OncewardOptions } from "@onceward/client";
import { tracing } from "@onceward/client/otel";
import {
  type Context,
  context,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { TRACE_HEADERS } from "./headers.ts";
import type { Ending } from "./metrics.ts";

/** Makes a span of each guarded request. */
export interface ProxyTracing {
  /** For the client of Onceward: its spans are children of the request's. */
  readonly trace: NonNullable<OncewardOptions["trace"]>;
  /**
   * Does the work of a request within a span, which is a child of the span that the request's `traceparent` names. `work` gets
   * the headers that name the span, as names and values by turns.
   *
   * @param path the pattern of the route.
   */
  request(
    call: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse; readonly path: string },
    work: (headers: readonly string[]) => Promise<Ending>,
  ): Promise<Ending>;
  /** Exports the spans that have ended, for at most `limitMs`. Never rejects. */
  close(limitMs: number): Promise<void>;
}

/** Longer headers are not a trace context: W3C's `traceparent` has 55 characters, and `tracestate` may be cut at 512. */
const MAX_HEADER_LENGTH = 512;
/** While a collector is down every export fails. */
const WARNING_INTERVAL_MS = 60_000;
/** A message of the SDK may contain an answer of the collector, of any length. */
const MAX_PROBLEM_LENGTH = 200;

/**
 * Makes spans with OpenTelemetry's SDK, and exports them by OTLP over HTTP. The SDK reads `OTEL_*` from the environment: endpoint,
 * headers, timeout, sampler, limits, the queue's size, and the resource. Names and attributes follow the semantic conventions for
 * HTTP servers; no span has a key, a header's value or a body.
 *
 * Sets the process's context manager and the SDK's logger. This module is imported only while tracing is on.
 */
export function openTelemetry(warn: (line: string) => void): ProxyTracing {
  const logged = { atMs: Number.NEGATIVE_INFINITY };
  const report = (problem: string) => {
    if (performance.now() - logged.atMs < WARNING_INTERVAL_MS) return;
    logged.atMs = performance.now();
    warn(`OpenTelemetry: ${problem.slice(0, MAX_PROBLEM_LENGTH)}`);
  };
  const ignore = () => {};
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  context.setGlobalContextManager(contextManager());
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": "onceward-http-proxy" }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  const tracer = provider.getTracer("onceward-http-proxy");
  const propagator = new W3CTraceContextPropagator();
  return {
    trace: tracing(tracer),
    async request({ incoming, outgoing, path }, work) {
      const { method = "" } = incoming;
      const parent = propagator.extract(ROOT_CONTEXT, incoming, BOUNDED_HEADERS);
      const attributes = { "http.request.method": method, "http.route": path };
      const span = tracer.startSpan(`${method} ${path}`, { kind: SpanKind.SERVER, attributes }, parent);
      const active = trace.setSpan(parent, span);
      const headers: string[] = [];
      propagator.inject(active, headers, { set: (names, name, value) => void names.push(name, value) });
      try {
        const ending = await context.with(active, work, undefined, headers);
        span.setAttributes({
          "http.response.status_code": outgoing.statusCode,
          "onceward.http_proxy.ending": ending,
        });
        if (outgoing.statusCode >= 500) {
          span.setAttribute("error.type", String(outgoing.statusCode));
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        return ending;
      } finally {
        span.end();
      }
    },
    async close(limitMs) {
      const limit = new AbortController();
      const exported = provider
        .shutdown()
        .catch((error: Error) => report(error.message))
        .finally(() => limit.abort());
      await Promise.race([exported, delay(limitMs, undefined, { signal: limit.signal }).catch(() => {})]);
    },
  };
}

const BOUNDED_HEADERS = {
  keys: () => TRACE_HEADERS,
  get({ headers }: { headers: NodeJS.Dict<string | string[]> }, name: string): string | undefined {
    const value = headers[name]?.toString();
    return value === undefined || value.length > MAX_HEADER_LENGTH ? undefined : value;
  },
};

/** Contexts follow asynchronous calls. OpenTelemetry has the same in a package of its own, with bindings of emitters. */
function contextManager() {
  const storage = new AsyncLocalStorage<Context>();
  const manager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: <A extends unknown[], R>(active: Context, fn: (...args: A) => R, self?: unknown, ...args: A) =>
      storage.run(active, () => fn.call(self, ...args)),
    bind: <T>(_: Context, target: T) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}
