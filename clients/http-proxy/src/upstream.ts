import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import type { Duplex } from "node:stream";

/** The upstream service. */
export class Upstream {
  readonly #origin: URL;
  readonly #shared: Agent;
  readonly #running = new Set<ClientRequest>();
  /** Shared connections on which nothing can follow the response that is being read. */
  readonly #clean = new WeakSet<Duplex>();

  /** @throws TypeError for a URL with a path, a query or credentials. */
  constructor(origin: URL) {
    if (
      !/^https?:$/.test(origin.protocol) ||
      origin.pathname !== "/" ||
      origin.search !== "" ||
      origin.username !== ""
    )
      throw new TypeError("the upstream must be an address such as http://127.0.0.1:3000, without a path");
    this.#origin = origin;
    const options = { keepAlive: true };
    this.#shared = origin.protocol === "https:" ? new TlsAgent(options) : new Agent(options);
    const keep = this.#shared.keepSocketAlive.bind(this.#shared);
    this.#shared.keepSocketAlive = (socket) => this.#clean.delete(socket) && keep(socket);
  }

  /**
   * Begins a request with the method and the target of another one.
   *
   * @param headers names and values by turns.
   * @param connection `shared`: one that other requests have used, which may break for reasons of theirs; `own`: a new one.
   */
  send(
    { method = "GET", url = "/", headers: { host } }: IncomingMessage,
    headers: readonly string[],
    connection: "shared" | "own",
  ): ClientRequest {
    const { protocol, hostname, port } = this.#origin;
    const start = protocol === "https:" ? requestTls : request;
    const sent = start({
      // URL puts an IPv6 address into brackets.
      host: hostname.replace(/^\[|\]$/g, ""),
      ...(port !== "" && { port }),
      method,
      path: url,
      // HTTP/1.1 needs the header, and HTTP/1.0 does not have it.
      headers: host === undefined ? [...headers, "Host", this.#origin.host] : headers,
      agent: connection === "shared" ? this.#shared : false,
    });
    if (connection === "shared") this.#noteClean(sent);
    this.#running.add(sent);
    sent.once("close", () => this.#running.delete(sent));
    return sent;
  }

  /**
   * Notes whether the connection of a request may have another one: after a response that is one by its own head. A body that a
   * service sends where none may be would be taken for the next client's response. Node itself drops connections with more bytes.
   */
  #noteClean(request: ClientRequest): void {
    let interim = false;
    request.once("information", () => {
      interim = true;
    });
    request.once("response", ({ statusCode, headers, socket }) => {
      const mayHaveBody = request.method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
      const isFramed = "content-length" in headers || "transfer-encoding" in headers;
      if (mayHaveBody && isFramed && !interim) this.#clean.add(socket);
    });
  }

  /** Ends connections, also those of requests that run: they would keep the process. */
  close(): void {
    for (const request of this.#running) request.destroy(new Error("the proxy ends"));
    this.#shared.destroy();
  }
}
