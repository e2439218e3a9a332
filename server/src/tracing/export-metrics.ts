import { type HrTime, ValueType } from "@opentelemetry/api";
import { type ExportResult, getNumberFromEnv, hrTime } from "@opentelemetry/core";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from "@opentelemetry/otlp-exporter-base/node-http";
import { MetricsExporterMetricsHelper, ProtobufMetricsSerializer } from "@opentelemetry/otlp-transformer";
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
} from "@opentelemetry/sdk-metrics";
import { createRepeating, type Repeating } from "../background/repeat.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { MAX_PROBLEM_LENGTH, resourceOf } from "./opentelemetry.ts";

const DEFAULT_INTERVAL_MS = 60_000;

/**
 * Exports the metrics of `/metrics` by OTLP over HTTP, under the same names. The SDK reads `OTEL_*` from the environment, as for
 * spans. One export is in progress at a time: nothing is kept for a collector that does not answer.
 *
 * This module is imported only while metrics are exported, because it loads the SDK.
 */
export function openMetricsExport(
  replica: { readonly id: string; readonly version: string },
  { samples }: Pick<Metrics, "samples">,
  onFailed: (error: unknown) => void,
): Repeating {
  const type = { "Content-Type": "application/x-protobuf" };
  const http = convertLegacyHttpOptions({}, "METRICS", "v1/metrics", type);
  const form = [
    ProtobufMetricsSerializer,
    "otlp_http_metric_exporter",
    MetricsExporterMetricsHelper,
  ] as const;
  const exporter = new OTLPExporterBase(createOtlpHttpExportDelegate(http, ...form, undefined));
  const resource = resourceOf({ ...replica, instanceId: replica.id });
  const startTime = hrTime();
  async function exportAll(): Promise<void> {
    const times = { startTime, endTime: hrTime() };
    const metrics = (await samples()).map((metric) => metricData(metric, times));
    const exported = { resource, scopeMetrics: [{ scope: { name: "onceward" }, metrics }] };
    const { error } = await new Promise<ExportResult>((resolve) => exporter.export(exported, resolve));
    if (error !== undefined) throw new Error(error.message.slice(0, MAX_PROBLEM_LENGTH));
  }
  const intervalMs = getNumberFromEnv("OTEL_METRIC_EXPORT_INTERVAL") ?? DEFAULT_INTERVAL_MS;
  return createRepeating({ intervalMs, work: exportAll, turnsAtStop: 1, onFailed });
}

type Sampled = Awaited<ReturnType<Metrics["samples"]>>[number];
type Times = { readonly startTime: HrTime; readonly endTime: HrTime };

/** Returns a metric as the SDK has it. Counters and histograms count from the start of the process. */
function metricData({ name, help, type, values }: Sampled, times: Times): MetricData {
  const metric = {
    descriptor: { name, description: help, unit: "", valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  // prom-client declares numbers for its types, and has texts.
  if (String(type) === "histogram")
    return { ...metric, dataPointType: DataPointType.HISTOGRAM, dataPoints: histograms(values, times) };
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: labels, value }));
  return String(type) === "counter"
    ? { ...metric, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...metric, dataPointType: DataPointType.GAUGE, dataPoints };
}

/** Returns a histogram for each set of labels. Prometheus counts a bucket with all smaller ones, OpenTelemetry alone. */
function histograms(values: Sampled["values"], times: Times): DataPoint<Histogram>[] {
  const points = new Map<string, DataPoint<Histogram>>();
  for (const sample of values) {
    const { value } = sample;
    const { le, ...attributes } = sample.labels;
    const key = JSON.stringify(attributes);
    const empty: Histogram = { buckets: { boundaries: [], counts: [] }, sum: 0, count: 0 };
    const point = points.get(key) ?? { ...times, attributes, value: empty };
    points.set(key, point);
    const { buckets } = point.value;
    if ("metricName" in sample && String(sample.metricName).endsWith("_sum")) point.value.sum = value;
    if (le === undefined) continue;
    buckets.counts.push(value - point.value.count);
    point.value.count = value;
    if (Number.isFinite(Number(le))) buckets.boundaries.push(Number(le));
  }
  return [...points.values()];
}
