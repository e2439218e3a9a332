import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";

/** The upstream service. */
export class Upstream {
  readonly #origin: URL;
  readonly #shared: Agent;
  readonly #running = new Set<ClientRequest>();

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
    this.#running.add(sent);
    sent.once("close", () => this.#running.delete(sent));
    return sent;
  }

  /** Ends connections, also those of requests that run: they would keep the process. */
  close(): void {
    for (const request of this.#running) request.destroy(new Error("the proxy ends"));
    this.#shared.destroy();
  }
}
