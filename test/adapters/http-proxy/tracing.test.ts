import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { startProxyCommand } from "../../support/deploy/proxy-command.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { startCollector } from "../../support/tracing/collector.ts";
import { send } from "../http/http-client.ts";
import { ROUTES, startWorld } from "./proxied-world.ts";

const world = useServer();
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID = "b7ad6b7169203331";
const TRACE = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`, tracestate: "shop=1" };
/** Prints each module of OpenTelemetry that Node loads. */
const PRINT_MODULES = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) {
  if (/@opentelemetry/.test(url)) process.stdout.write("loaded " + url + "\\n");
  return next(url, context);
} });`;

/** Starts the command line's proxy, in a process of its own, before a service that answers with `status`. */
async function startTraced(status: number | "never", otel: Readonly<Record<string, string>>) {
  const effect = vi.fn((incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (status !== "never") incoming.resume().on("end", () => outgoing.writeHead(status).end());
  });
  const { upstream, environment } = await startWorld(world, effect);
  const { port } = upstream.address() as { port: number };
  const proxy = await startProxyCommand({
    command: [
      ...["sh", "-c", 'exec node clients/cli/dist/main.js http-proxy "$@"', "http-proxy"],
      ...[`--upstream=http://127.0.0.1:${port}`, "--config=/routes.yaml"],
      ...["--listen=0.0.0.0:8090", "--management=0.0.0.0:9465", "--drain=0"],
    ],
    env: {
      ...{ ...environment, ...otel },
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PRINT_MODULES)}`,
    },
    files: { "/routes.yaml": ROUTES },
  });
  const post = (path: string, key: string, trace: Readonly<Record<string, string>> = TRACE) =>
    send(proxy.port, {
      path,
      headers: { authorization: "Bearer secret-token", "idempotency-key": `"${key}"`, ...trace },
    });
  return { proxy, effect, post };
}

test("a guarded request's span continues its trace, and service and client continue it", async () => {
  const collector = await startCollector();
  onTestFinished(() => collector.close());
  const { proxy, effect, post } = await startTraced(503, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: "600000",
  });
  expect((await post("/charges/1", "order-1")).status).toBe(503);
  expect((await post("/free", "order-1")).status).toBe(503);
  expect((await send(proxy.port, { path: "/charges/1" })).status).toBe(400);
  // The last spans are exported before the process ends.
  expect(await proxy.stop()).toBe(0);
  const requests = collector.spans.filter(({ kind }) => kind === 2);
  expect(requests).toHaveLength(2);
  const [guarded, refused] = requests;
  expect(guarded).toMatchObject({
    ...{ name: "POST /charges/:id", traceId: TRACE_ID, parentSpanId: PARENT_ID, statusCode: 2 },
    attributes: {
      "http.request.method": "POST",
      "http.route": "/charges/:id",
      "http.response.status_code": 503,
      "onceward.http_proxy.ending": "ran",
      "error.type": "503",
    },
    resource: { "service.name": "onceward-http-proxy" },
  });
  const ending = { "http.response.status_code": 400, "onceward.http_proxy.ending": "refused" };
  expect(refused).toMatchObject({ parentSpanId: "", statusCode: 0, attributes: ending });
  const run = collector.spans.find(({ name }) => name === "onceward.run");
  expect(run).toMatchObject({ traceId: TRACE_ID, parentSpanId: guarded?.spanId });
  const [charged, passed] = effect.mock.calls.map(([{ headers }]) => [
    headers.traceparent,
    headers.tracestate,
  ]);
  expect(charged).toEqual([`00-${TRACE_ID}-${guarded?.spanId}-01`, "shop=1"]);
  expect(passed).toEqual([`00-${TRACE_ID}-${PARENT_ID}-01`, "shop=1"]);
  expect(Buffer.concat(collector.bodies).toString("latin1")).not.toMatch(/secret-token|order-1/);
});

test("without tracing variables OpenTelemetry is not loaded, and a trace context passes", async () => {
  const { proxy, effect, post } = await startTraced(201, {});
  expect((await post("/charges/1", "order-1")).status).toBe(201);
  expect(effect.mock.calls[0]?.[0].headers.traceparent).toBe(`00-${TRACE_ID}-${PARENT_ID}-01`);
  expect(await proxy.stop()).toBe(0);
  expect(proxy.printed()).not.toContain("loaded ");
});

test("a malformed, too long or repeated trace context begins a new trace and is dropped", async () => {
  const collector = await startCollector();
  onTestFinished(() => collector.close());
  const { proxy, effect, post } = await startTraced(201, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: "600000",
  });
  const { traceparent } = TRACE;
  const hostile: readonly Readonly<Record<string, string>>[] = [
    { traceparent: `${traceparent}, ${traceparent}` },
    { traceparent: `ff${traceparent.slice(2)}` },
    { traceparent: `00-${"0".repeat(32)}-${PARENT_ID}-01` },
    { traceparent: `${traceparent}-more` },
    { traceparent: `01${traceparent.slice(2)}-${"x".repeat(8000)}` },
    { traceparent: "\u00ff".repeat(55) },
    { ...TRACE, tracestate: `a=${"x".repeat(8000)}` },
    { ...TRACE, tracestate: "a=\u00ff,=,b,c\u00e9=1" },
    { ...TRACE, tracestate: Array.from({ length: 100 }, (_, index) => `k${index}=1`).join(",") },
    { traceparent: `${traceparent.slice(0, -2)}ff` },
  ];
  for (const [index, trace] of hostile.entries())
    expect((await post("/charges/1", `order-${index}`, trace)).status).toBe(201);
  expect(await proxy.stop()).toBe(0);
  const requests = collector.spans.filter(({ kind }) => kind === 2);
  expect(requests).toHaveLength(hostile.length);
  const continued = requests.map(({ traceId }) => traceId === TRACE_ID);
  expect(continued).toEqual([...Array(6).fill(false), ...Array(4).fill(true)]);
  for (const [index, { headers }] of effect.mock.calls.map(([incoming]) => incoming).entries()) {
    expect(headers.traceparent).toBe(`00-${requests[index]?.traceId}-${requests[index]?.spanId}-01`);
    expect(String(headers.tracestate ?? "")).toMatch(/^[\x20-\x7e]{0,512}$/);
  }
});

test("a collector or service that never answers holds up no other request and no stop", async () => {
  const collector = await startCollector({ hangs: true });
  onTestFinished(() => collector.close());
  const { proxy, effect, post } = await startTraced("never", {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: "600000",
    OTEL_BSP_SCHEDULE_DELAY: "1",
    OTEL_BSP_EXPORT_TIMEOUT: "600000",
  });
  // Refused for its missing key: its span is exported.
  expect((await send(proxy.port, { path: "/acp" })).status).toBe(400);
  await expect.poll(() => collector.bodies.length, { timeout: 60_000 }).toBe(1);
  const cut = post("/charges/1", "order-1").catch((error: Error) => error.message);
  await expect.poll(() => effect.mock.calls.length, { timeout: 60_000 }).toBe(1);
  expect(await proxy.stop()).toBe(0);
  expect(await cut).toMatch(/hang up|ECONNRESET/);
});
