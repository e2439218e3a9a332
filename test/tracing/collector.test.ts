import { expect, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { grant } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { SERVER_PROGRAM, type ServerProcess, startServerProcess } from "../support/servers/server-process.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { type Collector, type CollectorOptions, startCollector } from "../support/tracing/collector.ts";

const database = useDatabase();

async function newCollector(options?: CollectorOptions): Promise<Collector> {
  const collector = await startCollector(options);
  onTestFinished(() => collector.close());
  return collector;
}

async function newServer(
  env: Readonly<Record<string, string>>,
  program?: readonly string[],
): Promise<ServerProcess> {
  const server = await startServerProcess(database.url, env, program);
  onTestFinished(() => server.end());
  return server;
}

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
  ["there is no exporter", { OTEL_TRACES_EXPORTER: "none" }],
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

test("a collector that never answers delays neither calls nor the end of the process", async () => {
  const collector = await newCollector({ hangs: true });
  const server = await newServer({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: "1",
    // Longer than the test may take.
    OTEL_EXPORTER_OTLP_TIMEOUT: "600000",
    OTEL_BSP_EXPORT_TIMEOUT: "600000",
    ONCEWARD_DRAIN_TIMEOUT: "1s",
  });
  await makeCalls(server, 1);
  await expect.poll(() => collector.bodies).toHaveLength(1);
  await makeCalls(server, 20);
  server.signal("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(server.output.filter((line) => line.includes("the last spans were not exported"))).toHaveLength(1);
});

test("failed exports are counted, and logged once a minute", async () => {
  const collector = await startCollector();
  await collector.close();
  const server = await newServer({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: "1",
    // Shorter than the pause before a retry.
    OTEL_EXPORTER_OTLP_TIMEOUT: "100",
  });
  const failures = async () =>
    (await readMetrics(server)).get('onceward_background_errors_total{task="export_spans"}') ?? 0;
  await expect
    .poll(async () => {
      await makeCalls(server, 1);
      return await failures();
    })
    .toBeGreaterThan(3);
  const lines = server.output.filter((line) => line.includes("exporting spans failed"));
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    level: 40,
    problem: expect.stringContaining("ECONNREFUSED"),
  });
});
