import { constants, type ServerHttp2Stream } from "node:http2";

/** Ends streams whose request does not arrive whole in time. */
export interface SlowRequests {
  /** Keeps an eye on a stream until its request is there. Cheap: called for every call. */
  watch(stream: ServerHttp2Stream): void;
  stop(): void;
}

export interface SlowRequestsOptions {
  /** How long a request may take, from its headers to its last byte; it is ended up to a quarter later. */
  readonly timeoutMs: number;
}

/**
 * A call begins once its request is whole, and for that a stream waits as long as the connection lives: streams that send
 * headers and then nothing would fill memory. One timer serves all streams; they are kept in the order in which they
 * came, so that a look stops at the first one that is young.
 *
 * It holds for streaming calls too: a reflection client that keeps its stream open has to open another.
 */
export function createSlowRequests({ timeoutMs }: SlowRequestsOptions): SlowRequests {
  const openedAtMs = new Map<ServerHttp2Stream, number>();

  function forget(this: ServerHttp2Stream): void {
    openedAtMs.delete(this);
  }

  function look(): void {
    const oldestMs = performance.now() - timeoutMs;
    for (const [stream, atMs] of openedAtMs) {
      if (atMs > oldestMs) return;
      openedAtMs.delete(stream);
      // A request that is whole may be worked on, or waited for, as long as its deadline says.
      if (!stream.readableEnded) stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  const timer = setInterval(look, timeoutMs / 4);
  timer.unref();
  return {
    watch(stream) {
      openedAtMs.set(stream, performance.now());
      stream.on("close", forget);
    },
    stop: () => clearInterval(timer),
  };
}
