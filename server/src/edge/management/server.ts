import type { IncomingMessage, ServerResponse } from "node:http";
import { TLSSocket } from "node:tls";
import type { Metrics } from "../../telemetry/metrics.ts";
import { createHttpPort } from "../http/port.ts";
import type { Tls } from "../tls.ts";

/**
 * The port for the platform: `/livez`, `/readyz`, `/metrics`. If clients must present a certificate, only
 * `/metrics` requires it: probes of a container have none, and learn only whether the replica accepts calls.
 */
export interface ManagementServer {
  /** Listens; resolves with the port. */
  listen(host: string, port: number): Promise<number>;
  /** Cuts all connections. */
  close(): Promise<void>;
  /** Returns the number of open connections. */
  connections(): number;
}

export interface ManagementOptions {
  readonly metrics: Metrics;
  /** Returns the reasons why the replica should get no traffic; empty if it should. */
  readonly unreadyReasons: () => readonly string[];
  readonly tls: Tls | undefined;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Probes and scrapers are few. */
const MAX_CONNECTIONS = 1000;

/** @see ManagementServer */
export function createManagementServer(options: ManagementOptions): ManagementServer {
  const { metrics, unreadyReasons, tls } = options;
  const ofTls = { rejectUnauthorized: false, handshakeTimeout: HANDSHAKE_TIMEOUT_MS };
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
        metrics.render().then(
          (text) => reply(response, 200, metrics.contentType, text),
          () => reply(response, 500, "text/plain", "the metrics could not be collected\n"),
        );
        return;
      default:
        return reply(response, 404, "text/plain", "/livez, /readyz, /metrics\n");
    }
  };
  const port = createHttpPort(ofTls, tls, answer, { maxPerAddress: MAX_CONNECTIONS });
  port.server.maxConnections = MAX_CONNECTIONS;
  return {
    listen: port.listen,
    close: () => port.close(0),
    connections: port.connections,
  };
}

/**
 * Whether the client's certificate is of a configured authority: the handshake accepts others too, but marks
 * them.
 */
function hasCertificate({ socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket && socket.authorized;
}

function reply(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { "content-type": contentType });
  response.end(body);
}
