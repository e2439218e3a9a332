import type { Credential } from "./credentials.ts";
import { followMoves } from "./follow-moves.ts";
import { createUnaryTransport } from "./grpc-transport.ts";
import { type Replica, Replicas } from "./replicas.ts";
import { SessionManager } from "./session-manager.ts";
import { tlsSettings } from "./tls.ts";
import type { TlsOptions } from "./tls-options.ts";
import type { Connection } from "./transport-options.ts";

/** Returns a connection to the replicas at these origins, and to where their tenant moves, without opening it yet. */
export function connectGrpc(
  origins: readonly string[],
  credential: Credential,
  tls: TlsOptions | undefined,
): Connection {
  const settings = tls && tlsSettings(tls);
  const connectTo = (origin: string): Replica => {
    const sessionManager = new SessionManager(origin, settings);
    return {
      transport: createUnaryTransport(sessionManager, credential),
      isReachable: () => sessionManager.isReachable(),
      close: () => sessionManager.abort(),
    };
  };
  return followMoves(origins, (home) => {
    const replicas = new Replicas(home.map(connectTo));
    return { transport: replicas, close: () => replicas.close() };
  });
}
