import { connect, Server, Socket } from "node:net";
import pino from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { createGrpcListener } from "./grpc/server.ts";
import { createHttpServer, type HttpServerOptions } from "./http/server.ts";
import { createManagementServer } from "./management/server.ts";
import { createInboundBudget, createOutboundTotal, createReplyBudget } from "./memory-budgets.ts";

const HOST = "127.0.0.1";

/** A port of a test, which nobody calls. */
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

test("the HTTP port takes 10,000 connections", async () => {
  const options: HttpServerOptions = {
    routes: [],
    pipeline: {} as never,
    inboundBudget: createInboundBudget(),
    outboundTotal: createOutboundTotal(),
    replyBudget: createReplyBudget(),
    log: pino({ level: "silent" }),
    requestTimeoutMs: 1000,
    tls: undefined,
    isAnonymous: false,
    openApi: {} as never,
    console: undefined,
    maxPerAddress: 10,
  };
  const [, maxConnections] = await start(createHttpServer(options));
  expect(maxConnections).toBe(10_000);
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
