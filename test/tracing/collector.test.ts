import { expect, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { grant } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { SERVER_PROGRAM, type ServerProcess } from "../support/servers/server-process.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startProcessOfTest } from "../support/servers/use-server.ts";
import { type Collector, type CollectorOptions, startCollector } from "../support/tracing/collector.ts";
import {
  attributes,
  bytes,
  type Fields,
  fieldsOf,
  messages,
  text,
} from "../support/tracing/otlp-messages.ts";

const database = useDatabase();

async function newCollector(options?: CollectorOptions): Promise<Collector> {
  const collector = await startCollector(options);
  onTestFinished(() => collector.close());
  return collector;
}

const newServer = (env: Readonly<Record<string, string>>, program?: readonly string[]) =>
  startProcessOfTest(database.url, env, program);

/** Makes calls one after another. */
async function makeCalls(server: ServerProcess, count: number): Promise<void> {
  const client = connectClient(server, (await createTenant(database)).apiKey);
  for (let i = 0; i < count; i++) await grant(client, { key: `order-${i}` });
}

/** Prints each module of OpenTelemetry that Node loads, without the API, which prom-client imports. */
const PRINT_MODULES = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) {
  if (/@opentelemetry.(?!api.)/.test(url)) process.stdout.write("loaded " + url + "\\n");
  return next(url, context);
} });`;
const PRINTING_PROGRAM = [
  "--import",
  `data:text/javascript,${encodeURIComponent(PRINT_MODULES)}`,
  ...SERVER_PROGRAM,
];

const loadedBy = ({ output }: ServerProcess) => output.filter((line) => line.startsWith("loaded "));

test.for([
  ["no variable is set", {}],
  ["the SDK is disabled", { OTEL_SDK_DISABLED: "true" }],
  ["there is no exporter", { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }],
] as const)("while %s, no module of the SDK is loaded, and nothing is sent", async ([why, off]) => {
  const collector = await newCollector();
  const endpoint: Readonly<Record<string, string>> =
    why === "no variable is set" ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const server = await newServer({ ...endpoint, ...off, ONCEWARD_LOG_LEVEL: "debug" }, PRINTING_PROGRAM);
  await makeCalls(server, 3);
  server.signal("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(loadedBy(server)).toEqual([]);
  expect(collector.paths).toEqual([]);
  expect(server.output.filter((line) => line.includes('"msg":"call"'))).toHaveLength(3);
  expect(server.output.join("\n")).not.toContain("trace_id");
});

test("the last spans are exported before the end, and the SDK is loaded for tracing", async () => {
  const collector = await newCollector();
  const server = await newServer(
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path`, OTEL_BSP_SCHEDULE_DELAY: "600000" },
    PRINTING_PROGRAM,
  );
  await makeCalls(server, 3);
  expect(collector.spans).toEqual([]);
  server.signal("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(collector.spans.filter(({ name }) => name.endsWith("/Claim"))).toHaveLength(3);
  expect(collector.paths).toEqual(["/own/path"]);
  expect(loadedBy(server)).not.toEqual([]);
});

/** Returns the 8 bytes of each number of a packed field. */
function packed(point: Fields, field: number): readonly Buffer[] {
  const all = bytes(point, field);
  return Array.from({ length: all.length / 8 }, (_, index) => all.subarray(8 * index, 8 * index + 8));
}

/**
 * Returns the resource and the metrics of an export, each with its points:
 * https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/metrics/v1/metrics.proto.
 */
function metricsOf(body: Uint8Array) {
  const none: Fields = new Map();
  const [exported = none] = messages(fieldsOf(body), 1);
  const metrics = messages(exported, 2).flatMap((scope) => messages(scope, 2));
  const byName = metrics.map((metric) => {
    const [gauge, sum, histogram] = [5, 7, 9].map((field) => messages(metric, field)[0]);
    const points = messages(gauge ?? sum ?? histogram ?? none, 1).map((point) => ({
      attributes: attributes(point, histogram === undefined ? 7 : 9),
      value: point.get(4)?.[0],
      counts: packed(point, 6).map((count) => Number(count.readBigUInt64LE())),
      bounds: packed(point, 7).map((bound) => bound.readDoubleLE()),
    }));
    return [text(metric, 1), { isCounter: sum?.get(3)?.[0] === 1, points }] as const;
  });
  return { resource: attributes(messages(exported, 1)[0] ?? none, 1), metrics: new Map(byName) };
}

test("the last metrics are exported before the end, the same as on the management port", async () => {
  const collector = await newCollector();
  const server = await newServer({
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${collector.url}/v1/metrics`,
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
  });
  await makeCalls(server, 3);
  const scraped = await readMetrics(server);
  server.signal("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(collector.paths).toEqual(["/v1/metrics"]);
  const { resource, metrics } = metricsOf(collector.bodies[0] as Buffer);
  expect(resource).toMatchObject({ "service.name": "onceward", "deployment.environment.name": "test" });
  expect(metrics.get("onceward_operations_total")).toMatchObject({
    isCounter: true,
    points: [{ attributes: { kind: "claim", outcome: "claimed" }, value: 3 }],
  });
  const durations = metrics.get("onceward_operation_duration_seconds")?.points ?? [];
  const claims = durations.find((point) => point.attributes.kind === "claim");
  let count = 0;
  for (const [index, bound] of [...(claims?.bounds ?? []), "+Inf"].entries()) {
    count += claims?.counts[index] ?? 0;
    const bucket = `onceward_operation_duration_seconds_bucket{kind="claim",le="${bound}"}`;
    expect([bucket, count]).toEqual([bucket, scraped.get(bucket)]);
  }
  expect(count).toBe(3);
  const families = [...scraped.keys()].map((name) => name.replace(/\{.*|_(bucket|sum|count)(\{.*)?$/g, ""));
  expect(new Set(families.filter((name) => !metrics.has(name)))).toEqual(new Set());
});

/** Settings by which spans and metrics are exported at once. */
const EAGER = {
  OTEL_BSP_SCHEDULE_DELAY: "1",
  OTEL_METRICS_EXPORTER: "otlp",
  OTEL_METRIC_EXPORT_INTERVAL: "100",
};

test("a collector that never answers delays neither calls nor the end of the process", async () => {
  const collector = await newCollector({ hangs: true });
  const server = await newServer({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...EAGER,
    // Longer than the test may take.
    OTEL_EXPORTER_OTLP_TIMEOUT: "600000",
    OTEL_BSP_EXPORT_TIMEOUT: "600000",
    ONCEWARD_DRAIN_TIMEOUT: "1s",
  });
  await makeCalls(server, 1);
  await expect.poll(() => new Set(collector.paths)).toEqual(new Set(["/v1/metrics", "/v1/traces"]));
  await makeCalls(server, 20);
  server.signal("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(
    server.output.filter((line) => /the last (spans|metrics) were not exported/.test(line)),
  ).toHaveLength(2);
  expect(collector.paths.filter((path) => path === "/v1/metrics")).toHaveLength(1);
});

test("failed exports are counted, and those of spans logged once a minute", async () => {
  const collector = await startCollector();
  await collector.close();
  const server = await newServer({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...EAGER,
    // Shorter than the pause before a retry.
    OTEL_EXPORTER_OTLP_TIMEOUT: "100",
  });
  const failures = async (what: string) =>
    (await readMetrics(server)).get(`onceward_background_errors_total{task="export_${what}"}`) ?? 0;
  await expect
    .poll(async () => {
      await makeCalls(server, 1);
      return Math.min(await failures("spans"), await failures("metrics"));
    })
    .toBeGreaterThan(3);
  const lines = server.output.filter((line) => line.includes("exporting spans failed"));
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    level: 40,
    problem: expect.stringContaining("ECONNREFUSED"),
  });
});
