import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { Http2SessionManager } from "@connectrpc/connect-node";
import type { TlsSettings } from "./tls.ts";
import { socketPathOf } from "./transport-options.ts";

/**
 * Together as long as the timeout of one attempt: if the peer vanished without closing the connection, the next attempt
 * uses a new one. Pings are sent only while calls are in flight and no data arrives.
 */
const PING_INTERVAL_MS = 3000;
const PING_TIMEOUT_MS = 2000;
/** The timeout of a probe, which delays no call. */
const PROBE_TIMEOUT_MS = 5000;

/** Connect's connection to one address, without its uncaught exceptions. */
export class SessionManager extends Http2SessionManager {
  readonly #guarded = new WeakSet<ClientHttp2Session>();
  /** When an answer last came in, on the clock of `performance.now()`. */
  #answeredAtMs = Number.NEGATIVE_INFINITY;

  /** The service's URL, or the address of its Unix socket. */
  readonly address: string;

  /** @param tls is read for each connection. */
  constructor(address: string, tls?: TlsSettings) {
    const path = socketPathOf(address);
    super(
      path ? "http://localhost" : address,
      { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS },
      path ? { createConnection: () => connect(path) } : tls,
    );
    this.address = address;
  }

  /**
   * Opens a stream, as Connect does. Node destroys a session that received a GOAWAY while idle with an error, emitted
   * once the socket is closed. If another call came first, Connect no longer listens by then, and the process would
   * end (https://github.com/connectrpc/connect-es/issues/1768). So each session gets a listener here.
   */
  override async request(...call: Parameters<Http2SessionManager["request"]>): Promise<ClientHttp2Stream> {
    const stream = await super.request(...call);
    const { session } = stream;
    if (session !== undefined && !this.#guarded.has(session as ClientHttp2Session)) {
      this.#guarded.add(session as ClientHttp2Session);
      session.on("error", () => {});
    }
    return stream;
  }

  override notifyResponseByteRead(stream: ClientHttp2Stream): void {
    this.#answeredAtMs = performance.now();
    super.notifyResponseByteRead(stream);
  }

  /**
   * Closes the connection after a call that began then and got no answer in time, unless another call was answered meanwhile: the
   * next attempt opens a new one. Other calls on it fail now, and are repeated.
   */
  noteSilence(beganAtMs: number): void {
    if (this.state() !== "connecting" && this.#answeredAtMs < beganAtMs) this.abort();
  }

  /** Resolves with whether the address accepts connections. Closes the connection it opens. Never rejects. */
  isReachable(): Promise<boolean> {
    const path = socketPathOf(this.address);
    const { hostname, port, protocol } = new URL(this.authority);
    // An IPv6 address has brackets in a URL only.
    const host = hostname.replace(/^\[|\]$/g, "");
    const tcp = { host, port: Number(port) || (protocol === "https:" ? 443 : 80) };
    return new Promise((resolve) => {
      const socket = connect(path ? { path } : tcp);
      const end = (reachable: boolean) => {
        socket.destroy();
        resolve(reachable);
      };
      socket.unref().setTimeout(PROBE_TIMEOUT_MS, () => end(false));
      socket.once("connect", () => end(true)).on("error", () => end(false));
    });
  }
}
