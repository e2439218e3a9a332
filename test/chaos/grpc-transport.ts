import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { SessionManager } from "../../clients/typescript/src/transport/session-manager.ts";

/**
 * Connect's transport to a port of this machine, on connections of our client's kind: a server that drains would end the
 * process of who calls by Connect's own (https://github.com/connectrpc/connect-es/issues/1768).
 */
export function grpcTransport(port: number, interceptors: readonly Interceptor[]): Transport {
  const baseUrl = `http://127.0.0.1:${port}`;
  const sessionManager = new SessionManager(baseUrl);
  return createGrpcTransport({ baseUrl, interceptors: [...interceptors], sessionManager });
}
