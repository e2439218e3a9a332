import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { type ReceivedSpan, readSpans } from "./otlp-messages.ts";

/** An OpenTelemetry collector that keeps what it receives. */
export interface Collector {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** The bodies of all requests. */
  readonly bodies: readonly Buffer[];
  /** The paths of all requests. */
  readonly paths: readonly string[];
  close(): Promise<void>;
}

/** How a collector treats its requests. */
export interface CollectorOptions {
  /** Never answers a request. */
  readonly hangs?: boolean;
}

/** Starts a collector on a free port. */
export async function startCollector({ hangs = false }: CollectorOptions = {}): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const bodies: Buffer[] = [];
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    buffer(request).then(
      (body) => {
        bodies.push(body);
        if (hangs) return;
        if (!request.url?.endsWith("/metrics")) spans.push(...readSpans(body));
        response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
      },
      () => response.destroy(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    paths,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
