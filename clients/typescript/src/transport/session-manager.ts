import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { Http2SessionManager } from "@connectrpc/connect-node";

/**
 * Together as long as an attempt may take: when one has not been answered because the peer vanished without a word, the
 * next goes over a new connection. Pings are sent only while calls are open and nothing comes in.
 */
const PING_INTERVAL_MS = 3000;
const PING_TIMEOUT_MS = 2000;
/** Of looking for a replica, which holds up no call. */
const PROBE_TIMEOUT_MS = 5000;

/** Connect's connection to one address, whose end never is an uncaught exception. */
export class SessionManager extends Http2SessionManager {
  readonly #guarded = new WeakSet<ClientHttp2Session>();

  constructor(address: string) {
    super(address, { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS });
  }

  /**
   * As connect's. A session that has received a GOAWAY while it was idle is destroyed with an error, which Node emits once
   * the socket is closed; connect has stopped listening by then if another call came first, and the process would end
   * (https://github.com/connectrpc/connect-es/issues/1768).
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

  /** Whether there is somebody who takes connections. Leaves none behind. Never rejects. */
  isReachable(): Promise<boolean> {
    const { hostname, port, protocol } = new URL(this.authority);
    // An IPv6 address has brackets in a URL only.
    const host = hostname.replace(/^\[|\]$/g, "");
    return new Promise((resolve) => {
      const socket = connect({ host, port: Number(port) || (protocol === "https:" ? 443 : 80) });
      const end = (reachable: boolean) => {
        socket.destroy();
        resolve(reachable);
      };
      socket.unref().setTimeout(PROBE_TIMEOUT_MS, () => end(false));
      socket.once("connect", () => end(true)).on("error", () => end(false));
    });
  }
}
