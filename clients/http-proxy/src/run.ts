import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { HttpProxy, type ProxyOptions } from "./proxy.ts";
import { answerInTurns } from "./turns.ts";

/** A proxy and where it listens. */
export interface RunOptions extends ProxyOptions {
  readonly listen: ListenAddress;
  /** Where health and metrics are served; keep it from clients. */
  readonly management: ListenAddress;
}

interface ListenAddress {
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
}

/** A proxy that serves. */
export interface RunningProxy {
  readonly port: number;
  readonly managementPort: number;
  /** Becomes unready, stops accepting connections, and waits for requests that run, at most `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}

/** Probes and scrapes need a few. */
const MAX_MANAGEMENT_CONNECTIONS = 100;

/** Starts a proxy. @throws TypeError for an invalid upstream or route; the error of listening. */
export async function startProxy({ listen, management, ...options }: RunOptions): Promise<RunningProxy> {
  const proxy = new HttpProxy(options);
  let isReady = false;
  const answer = answerInTurns((incoming, outgoing) => {
    const path = incoming.url?.split("?")[0];
    if (path === "/metrics")
      outgoing.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(proxy.metrics.text());
    else if (path === "/healthz") outgoing.writeHead(200).end("ok\n");
    else if (path === "/readyz") outgoing.writeHead(isReady ? 200 : 503).end(isReady ? "ok\n" : "draining\n");
    else outgoing.writeHead(404).end();
  });
  const managing = createServer(answer);
  managing.maxConnections = MAX_MANAGEMENT_CONNECTIONS;
  const managementPort = await start(managing, management);
  let port: number;
  try {
    port = await start(proxy.server, listen);
  } catch (error) {
    managing.close();
    throw error;
  }
  isReady = true;
  return {
    port,
    managementPort,
    async close(timeoutMs) {
      isReady = false;
      await proxy.drain(timeoutMs);
      managing.close();
      managing.closeAllConnections();
    },
  };
}

async function start(server: Server, { host, port }: ListenAddress): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
