import type { Config } from "../config/config.ts";
import {
  createInboundBudget,
  createOutboundTotal,
  createReplyBudget,
  createRequestBudget,
} from "../transport/bounds/memory-budgets.ts";
import { createGrpcServer } from "../transport/grpc/server.ts";
import { createHttpServer } from "../transport/http/server.ts";
import type { WebPage } from "../transport/http/web-page.ts";
import type { Pipeline } from "../transport/pipeline.ts";
import type { Route } from "../transport/route.ts";
import type { Facts } from "./connect.ts";

/** Creates the two ports of callers, gRPC, and HTTP with JSON, the console and the OpenAPI document, which share the pipeline and the budgets. Neither listens yet. */
export function createCallersPorts(
  { config, tls, log, openApi }: Facts,
  {
    console,
    ...parts
  }: {
    readonly routes: readonly Route[];
    readonly tenantMetrics: Route;
    readonly pipeline: Pipeline;
    /** Undefined: the replica serves no console. */
    readonly console: WebPage | undefined;
  },
) {
  const shared = {
    ...parts,
    tls,
    inboundBudget: createInboundBudget(),
    outboundTotal: createOutboundTotal(),
    replyBudget: createReplyBudget(),
    requestTimeoutMs: config.ONCEWARD_REQUEST_TIMEOUT,
    maxPerAddress: config.ONCEWARD_CONNECTIONS_PER_ADDRESS,
  };
  return {
    grpc: createGrpcServer({
      ...shared,
      requestBudget: createRequestBudget(),
      connectionAgeMs: config.ONCEWARD_CONNECTION_AGE,
    }),
    http: createHttpServer({
      ...shared,
      // Of its own: who fills the gRPC port keeps no browser out.
      requestBudget: createRequestBudget(),
      isAnonymous: config.ONCEWARD_ANONYMOUS_TENANT !== undefined,
      log,
      console,
      openApi,
    }),
  };
}

interface Listener {
  listen(host: string, port: number): Promise<number>;
}

interface SocketListener extends Listener {
  listenOnSocket(path: string, mode: number, group: number | undefined): Promise<void>;
}

/**
 * Listens on the three configured ports, and on the socket if one is configured. Tries all of them, so that one error names every
 * one that is taken.
 *
 * @returns the ports, each of which the system chooses if the configured one is 0.
 * @throws Error that names each port that cannot be used, and its variable. The others may be listening then.
 */
export async function listenOnAll(
  listeners: { readonly grpc: SocketListener; readonly http: Listener; readonly management: Listener },
  config: Config,
) {
  const { ONCEWARD_HOST: host, ONCEWARD_MANAGEMENT_HOST: managementHost = host } = config;
  const failures: Error[] = [];
  const noteFailure = (message: string) => (cause: unknown) => {
    failures.push(new Error(`cannot listen on ${message}`, { cause }));
    return 0;
  };
  const tryToListen = (
    listener: Listener,
    address: string,
    variable: "ONCEWARD_GRPC_PORT" | "ONCEWARD_HTTP_PORT" | "ONCEWARD_MANAGEMENT_PORT",
  ) => {
    const port = `${address} port ${config[variable]}`;
    return listener
      .listen(address, config[variable])
      .catch(noteFailure(`${port}: is it taken? ${variable} sets another one`));
  };
  const { ONCEWARD_SOCKET: socket } = config;
  if (socket !== undefined) {
    const question = "is it taken, may this user write to its folder, and set ONCEWARD_SOCKET_GROUP?";
    await listeners.grpc
      .listenOnSocket(socket, config.ONCEWARD_SOCKET_MODE, config.ONCEWARD_SOCKET_GROUP)
      .catch(noteFailure(`${socket}: ${question} ONCEWARD_SOCKET sets another path`));
  }
  const addresses = {
    grpcPort: await tryToListen(listeners.grpc, host, "ONCEWARD_GRPC_PORT"),
    httpPort: await tryToListen(listeners.http, host, "ONCEWARD_HTTP_PORT"),
    managementPort: await tryToListen(listeners.management, managementHost, "ONCEWARD_MANAGEMENT_PORT"),
    ...(socket !== undefined && { socket }),
  };
  const [first] = failures;
  if (first === undefined) return addresses;
  throw new Error(failures.map(({ message }) => message).join("\n"), { cause: first.cause });
}
