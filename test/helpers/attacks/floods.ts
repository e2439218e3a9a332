import { connectClient } from "../calls/clients.ts";
import { grant, success } from "../calls/verbs.ts";
import { pathOf } from "../network/raw-grpc.ts";
import { openSocket, type RawSocket } from "../network/raw-socket.ts";
import type { Target } from "./hostility.ts";

/** Opens connections that read nothing, and sends the same bytes on each. The caller destroys their sockets. */
export async function floodWith(
  port: number,
  connections: number,
  bytes: string,
): Promise<readonly RawSocket[]> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => openSocket(port)));
  for (const { socket, send } of sockets) {
    socket.pause();
    void send(bytes);
  }
  return sockets;
}

const RESULTS = 60;
const RESULT_BYTES = 60_000;

/** Stores 60 results of 60 KB; returns the HTTP/1.1 request of a batch that looks all of them up. */
export async function largeBatch({ server, tenant }: Target): Promise<string> {
  const client = connectClient(server, tenant.apiKey);
  const keys = Array.from({ length: RESULTS }, (_, n) => ({ namespace: "reports", key: `report-${n}` }));
  for (const id of keys) {
    const { fencingToken } = await grant(client, id);
    await client.complete({ ...id, fencingToken, result: success("x".repeat(RESULT_BYTES)) });
  }
  const body = JSON.stringify({ items: keys.map((lookup) => ({ lookup })) });
  const head = [
    `POST ${pathOf("Batch")} HTTP/1.1`,
    "host: a",
    `authorization: Bearer ${tenant.apiKey}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** A request of a file, and one of the metrics, which need no credential. */
export const OPENAPI_REQUEST = "GET /openapi.yaml HTTP/1.1\r\nhost: a\r\n\r\n";
export const METRICS_REQUEST = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n";
