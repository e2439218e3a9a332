import type { Credential } from "./credentials.ts";
import { createUnaryTransport } from "./grpc-transport.ts";
import { type Replica, Replicas } from "./replicas.ts";
import { SessionManager } from "./session-manager.ts";
import { tlsSettings } from "./tls.ts";
import type { TlsOptions } from "./tls-options.ts";
import type { Connection } from "./transport-options.ts";

/** Returns a connection to the replicas at these origins, without opening it yet. */
export function connectGrpc(
  origins: readonly string[],
  credential: Credential,
  tls: TlsOptions | undefined,
): Connection {
  const settings = tls && tlsSettings(tls);
  const replicas = new Replicas(
    origins.map((origin): Replica => {
      const sessionManager = new SessionManager(origin, settings);
      return {
        transport: createUnaryTransport(sessionManager, credential),
        isReachable: () => sessionManager.isReachable(),
        close: () => sessionManager.abort(),
      };
    }),
  );
  return { transport: replicas, close: () => replicas.close() };
}
