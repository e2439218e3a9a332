import { connect, Server, Socket } from "node:net";
import pino from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { Refusal } from "../domain/refusal.ts";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import {
  createInboundBudget,
  createOutboundTotal,
  createReplyBudget,
  createRequestBudget,
} from "./bounds/memory-budgets.ts";
import { FailedCall } from "./errors.ts";
import { createGrpcListener } from "./grpc/server.ts";
import { createHttpServer, type HttpServerOptions } from "./http/server.ts";
import { createManagementServer } from "./management/server.ts";
import type { Pipeline } from "./pipeline.ts";
import { routesOf } from "./route.ts";

const HOST = "127.0.0.1";

/** A port of a test, which no one calls. */
interface Port {
  listen(host: string, port: number): Promise<number>;
  close(graceMs: number): Promise<void>;
}

/** Starts a port; resolves with its number, and with the connections that its server takes. */
async function start(port: Port): Promise<readonly [port: number, maxConnections: number]> {
  const listen = vi.spyOn(Server.prototype, "listen");
  const number = await port.listen(HOST, 0);
  onTestFinished(() => port.close(0));
  const [server] = listen.mock.contexts as Server[];
  listen.mockRestore();
  return [number, server?.maxConnections ?? 0];
}

test("the gRPC port takes 10,000 connections", async () => {
  const options = { accept() {}, tls: undefined, handshakeTimeoutMs: 1000, maxPerAddress: 10 };
  const [, maxConnections] = await start(createGrpcListener(options));
  expect(maxConnections).toBe(10_000);
});

const HTTP: HttpServerOptions = {
  routes: [],
  pipeline: {} as never,
  inboundBudget: createInboundBudget(),
  outboundTotal: createOutboundTotal(),
  replyBudget: createReplyBudget(),
  requestBudget: createRequestBudget(),
  log: pino({ level: "silent" }),
  requestTimeoutMs: 1000,
  tls: undefined,
  isAnonymous: false,
  openApi: {} as never,
  console: undefined,
  maxPerAddress: 10,
};

test("the HTTP port takes 10,000 connections", async () => {
  const [, maxConnections] = await start(createHttpServer(HTTP));
  expect(maxConnections).toBe(10_000);
});

test("a batch over HTTP is read once its largest reply has room; other calls need none", async () => {
  const operator = { role: "OPERATOR", actor: "a key", goodUntilMs: Number.POSITIVE_INFINITY } as const;
  const pipeline: Pipeline = {
    callsInFlight: () => 0,
    authenticate: async () => operator,
    async answer(_, incoming) {
      try {
        await incoming.receive(operator);
      } catch (refusal) {
        throw new FailedCall(refusal as Refusal, "request-1");
      }
      throw new FailedCall(new Refusal("CREDENTIAL_MISSING", "read"), "request-1");
    },
  };
  const notCalled = () => Promise.reject(new Error("no test calls a service of ours"));
  const routes = routesOf(IdempotencyService, { claim: notCalled, batch: notCalled });
  const full = { maxBytes: 0, maxTenantBytes: 0, maxConnectionBytes: 0, maxWaitMs: 1 };
  const server = createHttpServer({ ...HTTP, routes, pipeline, replyBudget: createReplyBudget(full) });
  const [port] = await start(server);
  const statuses = ["Batch", "Claim"].map(async (method) => {
    const url = `http://${HOST}:${port}/onceward.v1.IdempotencyService/${method}`;
    const headers = { "content-type": "application/json" };
    return (await fetch(url, { method: "POST", headers, body: "{}" })).status;
  });
  expect(await Promise.all(statuses)).toEqual([503, 401]);
});

test("the management port cuts a connection that is silent for 10 seconds", async () => {
  const server = createManagementServer({ metrics: {} as never, unreadyReasons: () => [], tls: undefined });
  const [port] = await start(server);
  const setTimeouts = vi.spyOn(Socket.prototype, "setTimeout");
  onTestFinished(() => setTimeouts.mockRestore());
  const client = connect(port, HOST).on("error", () => {});
  onTestFinished(() => void client.destroy());
  await vi.waitUntil(() => setTimeouts.mock.calls.length > 0, { timeout: 30_000 });
  expect(setTimeouts.mock.calls[0]?.[0]).toBe(10_000);
});

test("the management port takes 256 connections, and 32 of an address", async () => {
  const server = createManagementServer({ metrics: {} as never, unreadyReasons: () => [], tls: undefined });
  const [port, maxConnections] = await start(server);
  expect(maxConnections).toBe(256);
  const sockets = Array.from({ length: 40 }, () => connect(port, HOST));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  let cut = 0;
  for (const socket of sockets) {
    socket.on("error", () => {});
    socket.on("close", () => cut++);
    socket.resume();
  }
  await vi.waitUntil(() => server.connections() + cut === 40, { timeout: 30_000 });
  expect([server.connections(), cut]).toEqual([32, 8]);
});

test("the management port renders the metrics once at a time, for all who ask meanwhile", async () => {
  let [rendering, most] = [0, 0];
  const metrics = {
    contentType: "text/plain",
    async render() {
      most = Math.max(most, ++rendering);
      // Lasts while the others ask.
      for (let probe = 0; probe < 3; probe++) await fetch(`http://${HOST}:${port}/livez`);
      rendering--;
      return "metrics";
    },
  };
  const options = { metrics: metrics as never, unreadyReasons: () => [], tls: undefined };
  const [port] = await start(createManagementServer(options));
  const scrapes = Array.from({ length: 20 }, () => fetch(`http://${HOST}:${port}/metrics`));
  const texts = await Promise.all(scrapes.map(async (scrape) => (await scrape).text()));
  expect(new Set(texts)).toEqual(new Set(["metrics"]));
  expect(most).toBe(1);
});

test("the management port rests for longer than a rendering took, then renders for all waiting", async () => {
  let renderings = 0;
  const probe = async () => {
    for (let probes = 0; probes < 3; probes++) await fetch(`http://${HOST}:${port}/livez`);
  };
  const metrics = {
    contentType: "text/plain",
    async render() {
      const text = String(++renderings);
      await probe();
      return text;
    },
  };
  const options = { metrics: metrics as never, unreadyReasons: () => [], tls: undefined };
  const [port] = await start(createManagementServer(options));
  const scrape = async () => (await fetch(`http://${HOST}:${port}/metrics`)).text();
  expect(await scrape()).toBe("1");
  const next = scrape();
  // Takes as long as the rendering did.
  await probe();
  expect(renderings).toBe(1);
  expect(await next).toBe("2");
});
