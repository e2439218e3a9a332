import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Onceward, OncewardError } from "@onceward/client";
import { OutcomeUnknownError, REQUEST_ID_HEADER } from "@onceward/client/http";
import type { RouteConfig } from "./config.ts";
import { NotSentError } from "./guarded-call.ts";
import { asVariable, endToEnd, mayUpgrade, valuesOf } from "./headers.ts";
import { type Ending, Metrics } from "./metrics.ts";
import type { ProxyTracing } from "./opentelemetry.ts";
import { pass, passUpgrade, refuse } from "./pass.ts";
import { type HeldRoom, SharedRoom } from "./room.ts";
import { type Routing, routerOf } from "./router.ts";
import { type GuardedResponse, type GuardedRoute, type RoutedCall, routesOf } from "./routes.ts";
import { answerInTurns } from "./turns.ts";
import { Upstream } from "./upstream.ts";

/** PEM texts for TLS in front of a proxy. */
export interface ProxyTls {
  readonly cert: string;
  readonly key: string;
  /** If given, every client needs a certificate of one of these authorities. */
  readonly clientCa?: string;
}

/** What a proxy guards, and where. */
export interface ProxyOptions {
  readonly onceward: Onceward;
  readonly upstream: URL;
  readonly routes: readonly RouteConfig[];
  /** The certificate for clients, and the authorities of theirs; undefined: the proxy speaks plain HTTP. */
  readonly tls?: ProxyTls | undefined;
  /** Whether X-Forwarded-Proto names the scheme of a request: a gateway sets it, and no client can forge it. Default: no. */
  readonly trustForwardedProto?: boolean | undefined;
  /** Gets a line for people about each request that failed. It names no header's value and no body. */
  readonly warn: (line: string) => void;
  /** Undefined: no spans. */
  readonly tracing?: ProxyTracing | undefined;
  /** Unset: MAX_LOAD. */
  readonly maxLoad?: ProxyLoad;
}

/** What a proxy holds at a time. */
export interface ProxyLoad {
  readonly connections: number;
  /** Requests that have not ended, of all connections. Those beyond are refused with 503. */
  readonly requests: number;
  /**
   * Bytes of guarded requests, which are read whole, REPLY_BYTES for each that is whole, and UPGRADE_BYTES for each upgrade. Those
   * beyond are refused with 503, and those of one caller beyond a half of what the others leave.
   */
  readonly heldBytes: number;
  /** How long a guarded request's body may take to arrive, in milliseconds. Then it is refused with 408. */
  readonly bodyMs: number;
  /** How long an upgraded connection may carry nothing, in milliseconds, until it is closed. */
  readonly idleMs: number;
  /** How long a client may take nothing of a response, in milliseconds, until its connection is closed. */
  readonly unreadMs: number;
}

const MIB = 1024 * 1024;
/** The guard reads a response to store it, up to the largest result of any policy; a longer one is streamed. */
const REPLY_BYTES = MIB;
/** Both sides of an upgraded connection buffer what the other one does not take. */
const UPGRADE_BYTES = 128 * 1024;
/** A connection costs some 20 KiB; a request opens a connection to the service. */
const MAX_LOAD: ProxyLoad = {
  connections: 10_000,
  requests: 2000,
  heldBytes: 512 * MIB,
  unreadMs: 60_000,
  bodyMs: 60_000,
  idleMs: 600_000,
};

/** A reverse proxy that guards the routes of its configuration, and passes all other requests. */
export class HttpProxy {
  readonly server: Server;
  readonly metrics = new Metrics();
  readonly #upstream: Upstream;
  readonly #routingOf: (incoming: IncomingMessage) => Routing<GuardedRoute>;
  readonly #warn: (line: string) => void;
  readonly #tracing: ProxyTracing | undefined;
  readonly #maxLoad: ProxyLoad;
  readonly #room: SharedRoom;
  readonly #upgraded = new Set<Duplex>();
  readonly #running = new Set<Promise<void>>();

  /** @throws TypeError for an invalid upstream, route or certificate. */
  constructor(options: ProxyOptions) {
    const { onceward, upstream, routes, tls, warn, tracing, maxLoad = MAX_LOAD } = options;
    const needsCertificates = routes.some(({ caller }) => "clientCertificate" in caller);
    if (needsCertificates && tls?.clientCa === undefined)
      throw new TypeError("a route's caller is a client's certificate: name the authorities of clients");
    this.#upstream = new Upstream(upstream);
    this.#routingOf = routerOf(routesOf(routes, onceward, this.#upstream), {
      own: tls === undefined ? "http" : "https",
      isForwarded: options.trustForwardedProto ?? false,
    });
    this.#warn = warn;
    this.#tracing = tracing;
    this.#maxLoad = maxLoad;
    this.#room = new SharedRoom(maxLoad.heldBytes);
    const listener = answerInTurns((incoming, outgoing) => {
      const running = this.#handle(incoming, outgoing).finally(() => this.#running.delete(running));
      this.#running.add(running);
    });
    // Otherwise the request is answered as if it had asked for no upgrade (RFC 9110, section 7.8). Node has this from 24.9 on.
    const ofServer = { shouldUpgradeCallback: (incoming: IncomingMessage) => this.#upgrades(incoming) };
    this.server =
      tls === undefined ? createServer(ofServer, listener) : serverWithTls(tls, ofServer, listener);
    this.server.maxConnections = maxLoad.connections;
    this.server.on("upgrade", (incoming, socket, head) => void this.#upgrade(incoming, socket, head));
  }

  /**
   * Stops accepting connections, and waits for requests that run, at most `timeoutMs`. Those that run longer are cut off: the
   * outcome of a guarded one is then unknown.
   */
  async drain(timeoutMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.#upgraded) socket.end();
    let timer: NodeJS.Timeout | undefined;
    const timedOut = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    // A call may outlive its client's connection, and its outcome is still to be stored.
    const answered = closed.then(() => Promise.all(this.#running));
    await Promise.race([answered, timedOut]);
    clearTimeout(timer);
    this.server.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
    this.#upstream.close();
    await closed;
  }

  async #handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    this.metrics.inFlight++;
    // It would hold its request, and with others like it all that the proxy may hold. A response that waits has nothing unread.
    const { socket } = incoming;
    outgoing.setTimeout(this.#maxLoad.unreadMs, () => {
      if (socket.writableLength > 0) socket.destroy();
    });
    const tracing = this.#tracing;
    const routing = this.#routingOf(incoming);
    const answer = async (traceHeaders?: readonly string[]) =>
      await this.#answer({ incoming, outgoing, routing, traceHeaders }).catch((error) =>
        this.#fail(error, incoming, outgoing),
      );
    const path = routing.kind === "guard" ? routing.route.config.path : undefined;
    try {
      this.metrics.ended(
        await (path === undefined || tracing === undefined
          ? answer()
          : tracing.request({ incoming, outgoing, path }, answer)),
      );
    } finally {
      this.metrics.inFlight--;
    }
  }

  #fail(error: unknown, { method }: IncomingMessage, outgoing: ServerResponse): Ending {
    const ending = endingOf(error);
    const requestId = error instanceof OncewardError ? error.requestId : undefined;
    const named = requestId === undefined ? "" : `, request ${requestId} of Onceward`;
    this.#warn(`${method} request ${ending}: ${reasonOf(error)}${named}`);
    // An error of the upstream service; one of a guarded call that was sent is answered by the guard.
    refuse(
      outgoing,
      ending === "failed" ? 500 : 502,
      requestId === undefined ? {} : { [REQUEST_ID_HEADER]: requestId },
    );
    return ending;
  }

  async #answer({ incoming, outgoing, routing, traceHeaders }: Routed): Promise<Ending> {
    if (this.metrics.inFlight > this.#maxLoad.requests) return this.#refuse(outgoing, 503, OVERLOADED);
    if (routing.kind === "pass") {
      await pass(this.#upstream, incoming, outgoing);
      return "passed";
    }
    if (routing.kind === "refuse") {
      const detail = detailOf(incoming);
      return this.#refuse(outgoing, routing.status, routing.title, detail);
    }
    const { route, origin, path, query } = routing;
    if (!isPlainOrChunked(incoming))
      return this.#refuse(outgoing, 501, "The proxy reads no other transfer coding than chunked.");
    const { maxBodyBytes, timeoutMs } = route.config;
    const identified = await route.identify(incoming);
    if (valuesOf(incoming.rawHeaders, asVariable(route.config.keyHeader)).length > 1)
      return this.#refuse(outgoing, 400, "The request has several keys.");
    if (identified.kind === "refused") return this.#refuse(outgoing, identified.status, identified.title);
    const { caller } = identified;
    const room = this.#room.of(caller);
    try {
      const { bodyMs } = this.#maxLoad;
      const body = await readBody(incoming, { maxBytes: maxBodyBytes, limitMs: bodyMs, room });
      if (body === "too slow")
        return this.#refuse(outgoing, 408, `The body did not arrive in ${bodyMs / 1000} s.`);
      if (body === "too large")
        return this.#refuse(outgoing, 413, `The body has more than ${maxBodyBytes} bytes.`);
      if (body === "no room" || !room.add(REPLY_BYTES)) return this.#refuse(outgoing, 503, OVERLOADED);
      const call = { incoming, body, timeoutMs, traceHeaders, origin, path, query, caller };
      return await this.#guard(route, call, outgoing);
    } finally {
      room.free();
    }
  }

  async #guard(
    route: GuardedRoute,
    call: Omit<RoutedCall, "report">,
    outgoing: ServerResponse,
  ): Promise<Ending> {
    let ending: Ending = "answered";
    const report = (reported: Ending) => {
      ending = reported;
    };
    const answer = await route.answer({ ...call, report });
    await send(answer, outgoing);
    return ending;
  }

  #upgrades(incoming: IncomingMessage): boolean {
    return mayUpgrade(incoming) && this.#routingOf(incoming).kind === "pass";
  }

  async #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    if (!this.#upgrades(incoming)) {
      // Before Node 24.9, which asks first.
      refuseUpgrade(socket, "400 Bad Request");
      this.metrics.ended("refused");
      return;
    }
    const room = this.#room.of("upgrades");
    this.metrics.inFlight++;
    try {
      if (this.metrics.inFlight > this.#maxLoad.requests || !room.add(UPGRADE_BYTES)) {
        refuseUpgrade(socket, "503 Service Unavailable");
        this.metrics.ended("refused");
        return;
      }
      this.#upgraded.add(socket);
      await passUpgrade(this.#upstream, { incoming, socket, head, idleMs: this.#maxLoad.idleMs });
      this.#upgraded.delete(socket);
      this.metrics.ended("passed");
    } finally {
      this.metrics.inFlight--;
      room.free();
    }
  }

  #refuse(outgoing: ServerResponse, status: number, title: string, detail?: string): Ending {
    outgoing.writeHead(status, {
      "content-type": "application/problem+json",
      connection: "close",
      ...(status === 503 && { "retry-after": "1" }),
    });
    outgoing.end(JSON.stringify({ type: "about:blank", status, title, detail }));
    return "refused";
  }
}

function refuseUpgrade(socket: Duplex, status: string): void {
  socket.on("error", () => socket.destroy()).resume();
  // It is no longer read, so that its end would not be seen.
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy());
}

/** A request, and what is done with it. */
interface Routed {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly routing: Routing<GuardedRoute>;
  readonly traceHeaders: readonly string[] | undefined;
}

const OVERLOADED = "The proxy has too many requests at once. Repeat this one.";

function serverWithTls(
  { cert, key, clientCa }: ProxyTls,
  options: ServerOptions,
  listener: RequestListener,
): Server {
  const asks = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  try {
    return createTlsServer({ ...options, cert, key, ...asks }, listener);
  } catch (cause) {
    throw new TypeError("the certificate or its key can't be used", { cause });
  }
}

/** A target may have 16 KiB. */
const MAX_DETAIL_LENGTH = 200;

/** Returns a request's method and target, cut short. */
function detailOf({ method, url }: IncomingMessage): string {
  return `${method} ${url}`.slice(0, MAX_DETAIL_LENGTH);
}

/** Any other coding would be lost with the header, because a guarded body is sent with its length. */
function isPlainOrChunked({ headers }: IncomingMessage): boolean {
  const coding = headers["transfer-encoding"];
  return coding === undefined || coding.trim().toLowerCase() === "chunked";
}

type Unread = "too large" | "too slow" | "no room";

/** Returns the whole body, or why it is not read, as soon as that is known. What it keeps, it holds in the room. */
async function readBody(
  incoming: IncomingMessage,
  { maxBytes, limitMs, room }: { maxBytes: number; limitMs: number; room: HeldRoom },
): Promise<Buffer<ArrayBuffer> | Unread> {
  if (Number(incoming.headers["content-length"] ?? 0) > maxBytes) return "too large";
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    const keep = (chunk: Buffer) => {
      chunks.push(chunk);
      sizeBytes += chunk.byteLength;
      if (sizeBytes > maxBytes) stop("too large");
      else if (!room.add(chunk.byteLength)) stop("no room");
    };
    const stop = (result: Buffer<ArrayBuffer> | Unread) => {
      clearTimeout(timer);
      incoming.off("data", keep);
      resolve(result);
    };
    const timer = setTimeout(stop, limitMs, "too slow");
    incoming.on("data", keep);
    incoming.on("end", () => stop(Buffer.concat(chunks)));
    incoming.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}

/** Sends a response; does nothing if the client has left. */
async function send(answer: GuardedResponse, outgoing: ServerResponse): Promise<void> {
  const { added } = answer;
  if (outgoing.destroyed) {
    if (answer.from === "upstream") answer.response.rest?.destroy();
    return;
  }
  if (answer.from === "guard") {
    const { status, headers, body } = answer.response;
    outgoing.writeHead(status, { ...headers, ...added, ...lengthOf(status, body) }).end(body);
    return;
  }
  const { status, statusMessage, headers, read, rest } = answer.response;
  const length = rest === undefined ? lengthOf(status, read) : {};
  const kept = endToEnd(headers, Object.keys(added));
  outgoing.writeHead(status, statusMessage, [...kept, ...Object.entries({ ...added, ...length }).flat()]);
  if (rest === undefined) {
    outgoing.end(read);
    return;
  }
  outgoing.write(read);
  await pipeline(rest, outgoing).catch(() => outgoing.destroy());
}

/** A response with one of these statuses has no body, and no length (RFC 9110, 8.6). */
function lengthOf(status: number, body: Uint8Array = new Uint8Array()): Record<string, string> {
  return status === 204 || status === 304 ? {} : { "content-length": String(body.byteLength) };
}

function endingOf(error: unknown): Ending {
  if (error instanceof NotSentError) return "unreachable";
  return error instanceof OutcomeUnknownError ? "unknown" : "failed";
}

/** Messages of other errors may contain what a client sent. */
function reasonOf(error: unknown): string {
  if (error instanceof OncewardError) return error.reason;
  if (!(error instanceof Error)) return "unknown error";
  return "code" in error ? String(error.code) : error.name;
}
