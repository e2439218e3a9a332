import type { Logger } from "pino";
import type { Config } from "./core/config/config.ts";
import { createGrpcServer } from "./core/transport/grpc/server.ts";
import type { OpenApi } from "./core/transport/http/openapi.ts";
import { createHttpServer } from "./core/transport/http/server.ts";
import type { WebPage } from "./core/transport/http/web-page.ts";
import {
  createInboundBudget,
  createOutboundTotal,
  createReplyBudget,
  createStreamBudget,
} from "./core/transport/memory-budgets.ts";
import type { Pipeline } from "./core/transport/pipeline.ts";
import type { Route } from "./core/transport/route.ts";
import type { Tls } from "./core/transport/tls.ts";

/** Creates the two ports of callers, gRPC, and HTTP with JSON, the console and the OpenAPI document, which share the pipeline and the budgets. Neither listens yet. */
export function createCallersPorts(
  config: Config,
  {
    log,
    console,
    openApi,
    ...parts
  }: {
    readonly routes: readonly Route[];
    readonly pipeline: Pipeline;
    readonly tls: Tls | undefined;
    readonly log: Logger;
    readonly openApi: OpenApi;
    /** Undefined: the replica serves no console. */
    readonly console: WebPage | undefined;
  },
) {
  const shared = {
    ...parts,
    inboundBudget: createInboundBudget(),
    outboundTotal: createOutboundTotal(),
    replyBudget: createReplyBudget(),
    streamBudget: createStreamBudget(),
    requestTimeoutMs: config.ONCEWARD_REQUEST_TIMEOUT,
    maxPerAddress: config.ONCEWARD_CONNECTIONS_PER_ADDRESS,
  };
  return {
    grpc: createGrpcServer({ ...shared, connectionAgeMs: config.ONCEWARD_CONNECTION_AGE }),
    http: createHttpServer({
      ...shared,
      isAnonymous: config.ONCEWARD_ANONYMOUS_TENANT !== undefined,
      log,
      console,
      openApi,
    }),
  };
}

/**
 * Listens on the port that a variable configures.
 *
 * @returns the port, which the system chooses if the configured one is 0.
 * @throws Error that names the variable of the port.
 */
export async function listen(
  listener: {
    listen(host: string, port: number): Promise<number>;
  },
  config: Config,
  variable: "ONCEWARD_GRPC_PORT" | "ONCEWARD_HTTP_PORT" | "ONCEWARD_MANAGEMENT_PORT",
): Promise<number> {
  const { [variable]: port } = config;
  const own = variable === "ONCEWARD_MANAGEMENT_PORT" ? config.ONCEWARD_MANAGEMENT_HOST : undefined;
  const host = own ?? config.ONCEWARD_HOST;
  try {
    return await listener.listen(host, port);
  } catch (cause) {
    throw new Error(`cannot listen on ${host} port ${port}: is it taken? ${variable} sets another one`, {
      cause,
    });
  }
}
