import { constants, type ServerHttp2Stream } from "node:http2";

/** Closes streams whose request does not arrive completely in time. */
export interface SlowRequests {
  /** Starts the time of a stream's request. Cheap: called for every call. */
  watch(stream: ServerHttp2Stream): void;
  /** Stops the timer. */
  stop(): void;
}

export interface SlowRequestsOptions {
  /** Time from a request's headers to its last byte; its stream is closed up to a quarter of this later. */
  readonly timeoutMs: number;
}

/**
 * Without this limit, streams that send headers and then nothing would fill memory for as long as their
 * connection lives. One timer serves all streams. They are kept in the order of their start, so that a check
 * stops at the first young one.
 *
 * The limit holds for streaming calls too: a reflection client that keeps its stream open longer must open
 * another one.
 */
export function createSlowRequests({ timeoutMs }: SlowRequestsOptions): SlowRequests {
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

  const timer = setInterval(closeSlow, timeoutMs / 4);
  timer.unref();
  return {
    watch(stream) {
      openedAtMs.set(stream, performance.now());
      stream.on("close", forget);
    },
    stop: () => clearInterval(timer),
  };
}
