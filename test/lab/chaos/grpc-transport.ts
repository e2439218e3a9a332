import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { SessionManager } from "../../../clients/typescript/src/transport/session-manager.ts";

/**
 * Returns connect's transport to a port of this machine, on the client's own connections: on connect's, a
 * server that drains would end the calling process (https://github.com/connectrpc/connect-es/issues/1768).
 */
export function grpcTransport(port: number, interceptors: readonly Interceptor[]): Transport {
  const baseUrl = `http://127.0.0.1:${port}`;
  const sessionManager = new SessionManager(baseUrl);
  return createGrpcTransport({ baseUrl, interceptors: [...interceptors], sessionManager });
}
