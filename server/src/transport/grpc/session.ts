import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { MAX_WAIT_MS } from "../../domain/limits.ts";
import type { ConnectionInboundBudget, OutboundBudget } from "../bounds/memory-budgets.ts";
import { BUDGET_SHARE } from "../bounds/memory-limit.ts";
import type { Pipeline } from "../pipeline.ts";

/** What the calls of a connection share. */
export interface GrpcConnection {
  readonly pipeline: Pipeline;
  readonly slowRequests: Pick<ReturnType<typeof createSlowRequests>, "watch">;
  /** Bytes that arrive, bytes that are not read yet, and replies in progress, each within its bounds. */
  readonly inbound: ConnectionInboundBudget;
  readonly outbound: OutboundBudget;
  readonly replies: ConnectionInboundBudget;
  /** The address of the other end. */
  readonly peer: string | undefined;
  /**
   * Begins a request in this turn of the event loop, or in a later one if others of the address took this one: then it returns
   * a function that drops the request.
   */
  readonly inTurn: (begin: () => void) => (() => void) | undefined;
}

/** The times of a session, in milliseconds. A peer that vanished is found after the last two, at the latest. */
export const SESSION_TIMES = {
  /** The session drains after this long without an open stream. */
  maxIdleMs: 10 * 60_000,
  /** Open streams may last this long after the GOAWAY; then the connection is cut. Longer than the longest wait of a Claim. */
  drainGraceMs: MAX_WAIT_MS + 10_000,
  /** From one keepalive PING's answer to the next PING. */
  keepaliveIntervalMs: 30_000,
  /** The connection is cut if a PING is not answered within this time. */
  keepaliveTimeoutMs: 10_000,
};

/** `maxAgeMs`: the session drains at this age, ±10 %, so that clients spread over new replicas. */
export type SessionTimes = typeof SESSION_TIMES & { readonly maxAgeMs: number };

type SessionState =
  /** No stream is open. New streams are accepted. The idle timer runs. */
  | { readonly name: "idle" }
  /** At least one stream is open. New streams are accepted. */
  | { readonly name: "active" }
  /**
   * GOAWAY has been sent: HTTP/2 refuses new streams, and open ones may finish until `cutTimer` fires. There
   * are not keepalive PINGs: Node cancels the PINGs of a session that closes. The session ends when its last
   * stream closes.
   */
  | { readonly name: "draining"; readonly cutTimer: NodeJS.Timeout }
  /** The connection has ended. No timer is left. */
  | { readonly name: "closed" };

// Shared by all sessions: a lone call takes its session from idle to active and back, and must not allocate
// for it.
const IDLE: SessionState = { name: "idle" };
const ACTIVE: SessionState = { name: "active" };
const CLOSED: SessionState = { name: "closed" };

/**
 * The part of the maximum age that is added or subtracted at random, so that sessions that began together end
 * apart.
 */
const AGE_JITTER = 0.1;

/**
 * Ends an HTTP/2 session of the gRPC port in time.
 *
 * | from | to | when |
 * |---|---|---|
 * | idle | active | a stream opens |
 * | active | idle | the last stream closes |
 * | idle | draining | the session was idle for too long |
 * | idle, active | draining | the session is too old, the server drains, or the client sends GOAWAY |
 * | any | closed | the connection ends, a PING is not answered, or draining takes too long |
 */
export class SessionLifecycle {
  readonly #session: ServerHttp2Session;
  /**
   * Connections are cut here: a session that is destroyed first waits until its peer has read everything, and
   * one that was closed waits until its peer closes the connection too, both without a limit.
   */
  readonly #socket: Pick<Socket, "destroy">;
  readonly #times: SessionTimes;
  readonly #onDraining: () => void;
  readonly #ageTimer: NodeJS.Timeout;
  readonly #idleTimer: NodeJS.Timeout;
  /** Until the next PING, or until the answer to the one that was sent. */
  #keepaliveTimer: NodeJS.Timeout;
  #openStreams = 0;
  #state: SessionState = IDLE;

  /**
   * @param socket The connection of the session.
   * @param onDraining Called once, when the session begins to drain. It isn't called for a session that ends
   * without that.
   */
  constructor(
    session: ServerHttp2Session,
    socket: Pick<Socket, "destroy">,
    times: SessionTimes,
    onDraining: () => void,
  ) {
    this.#session = session;
    this.#socket = socket;
    this.#times = times;
    this.#onDraining = onDraining;
    const jitter = 1 + AGE_JITTER * (2 * Math.random() - 1);
    this.#ageTimer = setTimeout(() => this.drain(), times.maxAgeMs * jitter).unref();
    this.#idleTimer = setTimeout(() => {
      if (this.#state === IDLE) this.drain();
    }, times.maxIdleMs).unref();
    this.#keepaliveTimer = this.#pingLater();
    session.once("goaway", () => this.drain());
    session.once("close", () => this.#setState(CLOSED));
  }

  /** Counts a stream as open until it closes. */
  streamOpened(stream: ServerHttp2Stream): void {
    this.#openStreams++;
    if (this.#state === IDLE) this.#setState(ACTIVE);
    stream.on("close", this.#streamClosed);
  }

  /** Sends GOAWAY; does nothing if the session drains already or is closed. */
  drain(): void {
    if (this.#state !== IDLE && this.#state !== ACTIVE) return;
    const cutTimer = setTimeout(this.#cut, this.#times.drainGraceMs).unref();
    this.#setState({ name: "draining", cutTimer });
  }

  #setState(next: SessionState): void {
    const previous = this.#state;
    this.#state = next;
    switch (next.name) {
      case "idle":
        this.#idleTimer.refresh();
        break;
      case "active":
        break;
      case "draining":
        this.#clearTimers();
        this.#onDraining();
        this.#session.close();
        break;
      case "closed":
        this.#clearTimers();
        if (previous.name === "draining") clearTimeout(previous.cutTimer);
        break;
      default:
        next satisfies never;
    }
  }

  readonly #streamClosed = () => {
    this.#openStreams--;
    if (this.#openStreams === 0 && this.#state === ACTIVE) this.#setState(IDLE);
  };

  #pingLater(): NodeJS.Timeout {
    return setTimeout(() => this.#ping(), this.#times.keepaliveIntervalMs).unref();
  }

  #ping(): void {
    if (this.#session.destroyed) {
      // Node ended the session after an error, and the peer has not read the rest of it.
      this.#socket.destroy();
      return;
    }
    this.#keepaliveTimer = setTimeout(this.#cut, this.#times.keepaliveTimeoutMs).unref();
    this.#session.ping(this.#pingAnswered);
  }

  readonly #cut = () => {
    this.#socket.destroy();
  };

  readonly #pingAnswered = (error: Error | null) => {
    if (this.#state !== IDLE && this.#state !== ACTIVE) return;
    // Node cancels the PING of a session that it ends: the peer may still read why, until the timer fires.
    if (error !== null) return;
    clearTimeout(this.#keepaliveTimer);
    this.#keepaliveTimer = this.#pingLater();
  };

  #clearTimers(): void {
    clearTimeout(this.#ageTimer);
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#keepaliveTimer);
  }
}

/**
 * Closes streams whose request does not arrive completely in time.
 *
 * Without this limit, streams that send headers and then nothing would fill memory for as long as their
 * connection lives. One timer serves all streams. They are kept in the order of their start, so that a check
 * stops at the first young one.
 *
 * The limit holds for streaming calls too: a reflection client that keeps its stream open longer must open
 * another one.
 *
 * @param timeoutMs Time from a request's headers to its last byte; its stream is closed up to a quarter of this later.
 */
export function createSlowRequests(timeoutMs: number) {
  const openedAtMs = new Map<ServerHttp2Stream, number>();

  function forget(this: ServerHttp2Stream): void {
    openedAtMs.delete(this);
  }

  function closeSlow(): void {
    const oldestMs = performance.now() - timeoutMs;
    for (const [stream, atMs] of openedAtMs) {
      if (atMs > oldestMs) return;
      openedAtMs.delete(stream);
      // A complete request may be in progress until its deadline.
      if (!stream.readableEnded) stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  const timer = setInterval(closeSlow, timeoutMs / 4).unref();
  return {
    /** Starts the time of a stream's request. Cheap: called for every call. */
    watch(stream: ServerHttp2Stream): void {
      openedAtMs.set(stream, performance.now());
      stream.on("close", forget);
    },
    /** Stops the timer. */
    stop: () => clearInterval(timer),
  };
}

/** With 1 GiB of memory or more; 144 KiB of headers each. */
const MAX_UNACKNOWLEDGED = 512;
/** A client acknowledges within a round trip. */
const UNACKNOWLEDGED_MS = 1000;

/**
 * Cuts the oldest connections whose peer has not acknowledged the server's settings within a second, if there are too many:
 * until then HTTP/2 has no limit for headers, and a peer may begin a list on each of its connections and not end it.
 */
export function createUnacknowledged(maxConnections = MAX_UNACKNOWLEDGED * BUDGET_SHARE) {
  const openedAtMs = new Map<Pick<Socket, "destroy">, number>();

  function cutOldest(): void {
    const newestMs = performance.now() - UNACKNOWLEDGED_MS;
    for (const [socket, atMs] of openedAtMs) {
      if (openedAtMs.size <= maxConnections || atMs > newestMs) return;
      openedAtMs.delete(socket);
      socket.destroy();
    }
  }

  const timer = setInterval(cutOldest, UNACKNOWLEDGED_MS).unref();
  return {
    /** Counts a connection until its peer acknowledges the settings. */
    watch(session: Pick<ServerHttp2Session, "once">, socket: Pick<Socket, "destroy">): void {
      openedAtMs.set(socket, performance.now());
      const forget = () => void openedAtMs.delete(socket);
      session.once("localSettings", forget);
      session.once("close", forget);
    },
    /** Stops the timer. */
    stop: () => clearInterval(timer),
  };
}
