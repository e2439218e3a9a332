import type { Message } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type {
  UniversalServerRequest as ServerRequest,
  UniversalServerResponse as ServerResponse,
} from "@connectrpc/connect/protocol";
import { Refusal } from "../domain/refusal.ts";
import { createBoundedCompressions } from "./bounded-compression.ts";
import { toConnectError } from "./errors.ts";
import { MAX_READ_BYTES } from "./grpc-messages.ts";
import type { IncomingCall, Pipeline } from "./pipeline.ts";
import type { Route } from "./route.ts";
import { parseTimeoutMs, TIMEOUT_HEADER } from "./timeouts.ts";
import { emptied, saysUnreadable } from "./unreadable.ts";

/** Answers a request; rejects only where the answer can't be given, because the caller has gone. */
export type ConnectHandler = (request: ServerRequest) => Promise<ServerResponse>;

/** What is known of a request beside what connect-node passes on. */
interface Arrival {
  /** As they came, before decompression. */
  bytes: number;
  /** Whether connect-node could read the request, and handed it over. */
  handedOver: boolean;
  readonly readable: boolean;
}

const ARRIVAL = createContextKey<Arrival>({ bytes: 0, handedOver: false, readable: true });

/**
 * Parsing is connect-node's. By default, it would take bytes that aren't UTF-8 for U+FFFD in JSON, and different keys
 * would collide.
 */
const JSON_OPTIONS = { ignoreUnknownFields: true, textDecoder: new TextDecoder("utf-8", { fatal: true }) };

/**
 * The RPCs by path, as Connect, gRPC-Web and JSON.
 *
 * What connect-node can't read it refuses by itself, in part as an internal error, without a reason and uncounted. Such a
 * request is put to the pipeline as a call whose message can't be read, and so it is refused as it is on the other port.
 */
export function createConnectHandlers(
  routes: readonly Route[],
  pipeline: Pipeline,
): ReadonlyMap<string, ConnectHandler> {
  const router = createConnectRouter({
    // Native gRPC has a port of its own.
    grpc: false,
    acceptCompression: createBoundedCompressions(),
    readMaxBytes: MAX_READ_BYTES,
    writeMaxBytes: MAX_READ_BYTES,
    jsonOptions: JSON_OPTIONS,
  });
  addRoutes(router, routes, pipeline);
  return new Map(
    router.handlers.map((handle) => [
      handle.requestPath,
      async (request) => {
        const arrival = { bytes: 0, handedOver: false, readable: true };
        const response = await handle(arriving(request, arrival));
        if (arrival.handedOver || !(await saysUnreadable(response))) return response;
        return handle(arriving(emptied(request), { ...arrival, readable: false }));
      },
    ]),
  );
}

function arriving(request: ServerRequest, arrival: Arrival): ServerRequest {
  const body = request.body as AsyncIterable<Uint8Array>;
  return {
    ...request,
    body: counted(body, arrival),
    contextValues: createContextValues().set(ARRIVAL, arrival),
  };
}

async function* counted(body: AsyncIterable<Uint8Array>, arrival: Arrival): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    arrival.bytes += chunk.byteLength;
    yield chunk;
  }
}

function addRoutes(router: ConnectRouter, routes: readonly Route[], pipeline: Pipeline): void {
  for (const route of routes) {
    router.rpc(route.method, async (request: Message, context: HandlerContext) => {
      try {
        return await pipeline(route, new IncomingConnectCall(request, context), asItIs);
      } catch (error) {
        throw error instanceof Refusal ? toConnectError(error) : error;
      }
    });
  }
}

/** connect-node encodes it as the request asks for. */
function asItIs(reply: Message): Message {
  return reply;
}

class IncomingConnectCall implements IncomingCall {
  readonly #request: Message;
  readonly #context: HandlerContext;
  readonly #arrival: Arrival;

  constructor(request: Message, context: HandlerContext) {
    this.#request = request;
    this.#context = context;
    this.#arrival = context.values.get(ARRIVAL);
    this.#arrival.handedOver = true;
  }

  header(name: string): string | undefined {
    return this.#context.requestHeader.get(name) ?? undefined;
  }

  get timeoutMs(): number | undefined {
    return parseTimeoutMs(this.header(TIMEOUT_HEADER));
  }

  get messageBytes(): number {
    return this.#arrival.bytes;
  }

  read(): Message {
    if (!this.#arrival.readable) throw new Error("connect-node could not read the message");
    return this.#request;
  }

  get cancelled(): boolean {
    return this.#context.signal.aborted;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }
}
