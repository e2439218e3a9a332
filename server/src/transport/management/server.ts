import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import type { Metrics } from "../../telemetry/metrics.ts";
import { createRequestBudget } from "../bounds/memory-budgets.ts";
import { createHttpPort, MAX_WAITING } from "../http/port.ts";
import type { Tls } from "../tls.ts";

const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Probes and scrapers are few; a peer that holds connections leaves room for those of other addresses. */
const MAX_CONNECTIONS = 256;
const MAX_PER_ADDRESS = 32;
/** As many as its connections may have open and waiting, so that their number alone cuts no probe of the same address. */
const MAX_REQUESTS = MAX_CONNECTIONS * (1 + MAX_WAITING);
/** Of open requests: those of a probe have a few hundred bytes. An address may have half. */
const MAX_OPEN_HEADER_BYTES = 2 * 1024 * 1024;
/** A peer that reads nothing of an answer, or sends nothing, is cut after this: probes and scrapes take milliseconds. */
const SILENCE_MS = 10_000;
/** In times that a rendering took: peers who ask without end take a twentieth of the processor with it. */
const REST = 19;
const MAX_REST_MS = 1000;

/**
 * Creates the port for the platform: `/livez`, `/readyz`, `/metrics`. It does not listen yet. If clients must present a
 * certificate, only `/metrics` requires it: probes of a container have none, and learn only whether the replica accepts calls.
 */
export function createManagementServer(options: {
  readonly metrics: Metrics;
  /** Returns the reasons why the replica should get no traffic; empty if it should. */
  readonly unreadyReasons: () => readonly string[];
  readonly tls: Tls | undefined;
  /** The longest rest after a rendering of the metrics. */
  readonly restMs?: number | undefined;
}) {
  const { metrics, unreadyReasons, tls, restMs = MAX_REST_MS } = options;
  const ofTls = {
    rejectUnauthorized: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    headersTimeout: SILENCE_MS,
    requestTimeout: SILENCE_MS,
    connectionsCheckingInterval: 1000,
  };
  const render = createSharedRendering(() => metrics.render(), restMs);
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    switch (request.url) {
      case "/livez":
        return reply(response, 200, "text/plain", "ok\n");
      case "/readyz": {
        const reasons = unreadyReasons();
        const body = { ready: reasons.length === 0, reasons };
        return reply(response, body.ready ? 200 : 503, "application/json", `${JSON.stringify(body)}\n`);
      }
      case "/metrics":
        if (tls?.asksClients && !hasCertificate(request)) {
          return reply(response, 403, "text/plain", "a client certificate is required\n");
        }
        render().then(
          (text) => reply(response, 200, metrics.contentType, text),
          () => reply(response, 500, "text/plain", "the metrics could not be collected\n"),
        );
        return;
      default:
        return reply(response, 404, "text/plain", "/livez, /readyz, /metrics\n");
    }
  };
  const requestBudget = createRequestBudget(MAX_REQUESTS, MAX_OPEN_HEADER_BYTES);
  const port = createHttpPort(ofTls, tls, answer, { maxPerAddress: MAX_PER_ADDRESS, requestBudget });
  port.server.maxConnections = MAX_CONNECTIONS;
  port.server.timeout = SILENCE_MS;
  return {
    ...port,
    /** Cuts all connections. */
    close: () => port.close(0),
  };
}

/**
 * Whether the client's certificate is of a configured authority: the handshake accepts others too, but marks
 * them.
 */
function hasCertificate({ socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket && socket.authorized;
}

/**
 * Returns a function that renders at most once at a time, into bytes that all who ask in the meantime share. After a rendering it
 * rests, and those who ask then get the next one: no one gets metrics from before the question, but for those of one in progress.
 */
function createSharedRendering(render: () => Promise<string>, maxRestMs: number): () => Promise<Buffer> {
  let shared: Promise<Buffer> | undefined;
  let restsUntilMs = 0;
  const renderRested = async () => {
    const restMs = restsUntilMs - performance.now();
    if (restMs > 0) await delay(restMs);
    const startedAtMs = performance.now();
    try {
      return Buffer.from(await render());
    } finally {
      const endedAtMs = performance.now();
      restsUntilMs = endedAtMs + Math.min((endedAtMs - startedAtMs) * REST, maxRestMs);
      shared = undefined;
    }
  };
  return () => {
    shared ??= renderRested();
    return shared;
  };
}

function reply(response: ServerResponse, status: number, contentType: string, body: string | Buffer): void {
  response.writeHead(status, { "content-type": contentType }).end(body);
}
