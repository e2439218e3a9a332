import { createServer, type ServerResponse } from "node:http";
import type { Metrics } from "../telemetry/metrics.ts";
import { closeHttp, listenHttp } from "./http-lifecycle.ts";

/** The port for the platform: `/livez`, `/readyz`, `/metrics`. */
export interface ManagementServer {
  /** The port it listens on. */
  listen(host: string, port: number): Promise<number>;
  close(): Promise<void>;
}

export interface ManagementOptions {
  readonly metrics: Metrics;
  /** Why the replica should get no traffic; empty if it should. */
  readonly unreadyReasons: () => readonly string[];
}

/** @see ManagementServer */
export function createManagementServer({ metrics, unreadyReasons }: ManagementOptions): ManagementServer {
  const server = createServer((request, response) => {
    switch (request.url) {
      case "/livez":
        return reply(response, 200, "text/plain", "ok\n");
      case "/readyz": {
        const reasons = unreadyReasons();
        const body = { ready: reasons.length === 0, reasons };
        return reply(response, body.ready ? 200 : 503, "application/json", `${JSON.stringify(body)}\n`);
      }
      case "/metrics":
        metrics.render().then(
          (text) => reply(response, 200, metrics.contentType, text),
          () => reply(response, 500, "text/plain", "the metrics could not be collected\n"),
        );
        return;
      default:
        return reply(response, 404, "text/plain", "/livez, /readyz, /metrics\n");
    }
  });
  return {
    listen: (host, port) => listenHttp(server, host, port),
    close: () => closeHttp(server, 0),
  };
}

function reply(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { "content-type": contentType });
  response.end(body);
}
