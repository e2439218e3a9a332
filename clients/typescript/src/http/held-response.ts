import { Buffer } from "node:buffer";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { isOutcomeUnknown } from "../run/outcome-unknown.ts";
import { MAX_RESULT_BYTES } from "../wire/limits.ts";
import { type Handled, type Handling, ResponseDestroyed } from "./guard.ts";
import { HiddenDisconnect, isAbort } from "./hidden-disconnect.ts";
import { PropertyOverrides } from "./property-overrides.ts";
import { restoreHead, setHead } from "./response-head.ts";
import type { WholeResponse } from "./whole-response.ts";

/**
 * Holds back the data written to a node:http response until `send`: nothing reaches the socket before the outcome is
 * stored. The handler sees an open response with a connected client, also after the client has disconnected.
 */
export class HeldResponse implements Handling<HeldResponse> {
  /**
   * Resolves once the response is whole, or larger than any policy allows. Rejects with ResponseDestroyed if the
   * handler destroys the response or its connection, which `abandon` then does. A client's disconnect has no effect. After
   * `noteError` of an unknown outcome, rejects with that error in both cases; then `discard` or `replace` the response.
   */
  readonly handled: Promise<Handled<HeldResponse>>;
  readonly #response: ServerResponse;
  readonly #original: Pick<ServerResponse, "write" | "end" | "writeHead" | "flushHeaders" | "destroy">;
  readonly #overrides: PropertyOverrides;
  readonly #disconnect: HiddenDisconnect;
  readonly #chunks: Buffer[] = [];
  #sizeBytes = 0;
  #begun = false;
  #ended = false;
  #held = true;
  #onFinish: (() => void) | undefined;
  #error: unknown;
  /** The handler's error, if it says that the outcome is unknown. */
  #unknown: unknown;
  /** The headers that earlier handlers have set. */
  readonly #headersBefore: OutgoingHttpHeaders;
  #resolve: (handled: Handled<HeldResponse>) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(request: IncomingMessage, response: ServerResponse) {
    const { write, end, writeHead, flushHeaders, destroy } = response;
    this.#response = response;
    this.#original = { write, end, writeHead, flushHeaders, destroy };
    this.#overrides = new PropertyOverrides(response);
    this.#headersBefore = { ...response.getHeaders() };
    // The response will never be whole.
    this.#disconnect = new HiddenDisconnect(request, response, () =>
      this.#reject(this.#unknown ?? new ResponseDestroyed(this.#error)),
    );
    this.handled = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#hold();
  }

  /** Aborts when the client disconnects. */
  get disconnected(): AbortSignal {
    return this.#disconnect.disconnected;
  }

  /** The handler's error, if `noteError` got one that says that the outcome is unknown. */
  get unknown(): unknown {
    return this.#unknown;
  }

  /** The first error that `noteError` got. */
  get error(): unknown {
    return this.#error;
  }

  /**
   * Notes an error of the handler, which the framework is about to answer: the guard sees no error, only the answer to it. No
   * effect once the response is whole.
   */
  noteError(error: unknown): void {
    this.#error ??= error;
    if (isOutcomeUnknown(error)) this.#unknown ??= error;
  }

  /**
   * Sends the held data, and restores the response and the view of its client. If nothing was held, the framework
   * writes the response. Abandons a response that the handler has destroyed.
   */
  send(): void {
    if (!this.#held) return;
    // A handler that breaks after its response has ended destroys the connection, and not the response.
    if (this.#ended) this.#disconnect.cancelDestroy();
    if (this.#disconnect.isDestroyed) {
      this.abandon();
      return;
    }
    this.#release();
    const response = this.#response;
    const { write, end } = this.#original;
    const body = Buffer.concat(this.#chunks.splice(0));
    if (this.#onFinish !== undefined) response.once("finish", this.#onFinish);
    if (this.#ended) end.call(response, body, "utf8");
    else if (this.#begun && write.call(response, body, "utf8")) response.emit("drain");
    if (this.#begun) this.#disconnect.report(this.#ended);
    else this.#reportOnceWritten();
  }

  /** Drops the held data, notifies the handler if its client has disconnected, and destroys what the handler has destroyed. */
  abandon(): void {
    if (!this.#held) return;
    this.#release();
    this.#chunks.length = 0;
    this.#disconnect.report(false);
  }

  /**
   * Drops the held data, and restores the response as it was before the handler, also if the handler has destroyed it: the framework
   * writes another one.
   */
  discard(): void {
    if (!this.#held) return;
    this.#disconnect.cancelDestroy();
    this.#release();
    this.#chunks.length = 0;
    restoreHead(this.#response, this.#headersBefore);
    this.#reportOnceWritten();
  }

  /** Sends another response in place of the held data. */
  replace({ status, headers, body = new Uint8Array() }: WholeResponse): void {
    this.discard();
    this.#overrides.undo();
    const response = this.#response;
    response.statusCode = status;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    // Node adds no length to a response from which one was removed.
    response.setHeader("content-length", body.byteLength);
    // Middleware between the guard and the handler may have ended its own view of the response.
    this.#original.end.call(response, body, "utf8");
    this.#disconnect.report(true);
  }

  #release(): void {
    this.#held = false;
    this.#overrides.undo();
    this.#disconnect.end();
  }

  /** Delays the report, because Fastify 4 answers again if the response closes before its answer is written. */
  #reportOnceWritten(): void {
    const response = this.#response;
    const reportAfter = (method: (...args: never[]) => unknown, finished: boolean) => ({
      writable: true,
      value: (...args: readonly unknown[]) => {
        this.#overrides.undo();
        const result: unknown = Reflect.apply(method, response, args);
        this.#disconnect.report(finished);
        return result;
      },
    });
    if (!this.disconnected.aborted) return;
    this.#overrides.define("write", reportAfter(this.#original.write, false));
    this.#overrides.define("end", reportAfter(this.#original.end, true));
  }

  #hold(): void {
    const response = this.#response;
    const original = this.#original;
    // Middleware between the guard and the handler keeps these methods, so they must also work after `send`.
    const methods = {
      writeHead: (...head: readonly unknown[]) => {
        if (!this.#held) return Reflect.apply(original.writeHead, response, head);
        this.#begun = true;
        setHead(response, head);
        return response;
      },
      flushHeaders: () => {
        if (!this.#held) return original.flushHeaders.call(response);
        this.#begun = true;
      },
      write: (...args: readonly unknown[]) => {
        // http itself refuses data that is written after the end.
        if (!this.#held || this.#ended) return Reflect.apply(original.write, response, args);
        if (this.#disconnect.isDestroyed) return refuse(args);
        const written = this.#keep(args);
        if (written !== undefined) queueMicrotask(written);
        this.#progress();
        return this.#sizeBytes <= MAX_RESULT_BYTES;
      },
      end: (...args: readonly unknown[]) => {
        if (!this.#held || this.#ended) return Reflect.apply(original.end, response, args);
        if (this.#disconnect.isDestroyed) {
          refuse(args);
          return response;
        }
        this.#onFinish = this.#keep(args);
        this.#ended = true;
        this.#overrides.define("finished", { value: true, writable: true });
        this.#progress();
        return response;
      },
      destroy: (error?: Error) => {
        // When a connection closes, http destroys the responses that still wait for it.
        if (this.#held && this.#disconnect.isQueued && isAbort(error)) return response;
        // A pipeline destroys the response with its own error.
        this.noteError(error);
        if (!this.#held) return original.destroy.call(response, error);
        this.#disconnect.delayDestroy(() => original.destroy.call(response, error));
        return response;
      },
    };
    for (const [name, value] of Object.entries(methods))
      this.#overrides.define(name, { value, writable: true });
    this.#overrides.define("headersSent", { get: () => this.#begun });
  }

  #progress(): void {
    const tooLarge = this.#sizeBytes > MAX_RESULT_BYTES;
    if (!tooLarge && !this.#ended) return;
    if (this.#unknown !== undefined) {
      this.#reject(this.#unknown);
      return;
    }
    const response = this.#response;
    const body = tooLarge ? undefined : Buffer.concat(this.#chunks);
    const { statusCode: status } = response;
    this.#resolve({ status, headers: response.getHeaders(), body, sent: this, error: this.#error });
  }

  /**
   * Keeps the arguments of `write` or `end`: a chunk, its encoding, a callback, each optional. Returns the callback.
   */
  #keep(args: readonly unknown[]): (() => void) | undefined {
    this.#begun = true;
    const [chunk, encoding] = args;
    if (typeof chunk === "string" || chunk instanceof Uint8Array) {
      const bytes = Buffer.from(
        chunk as string,
        typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8",
      );
      this.#chunks.push(bytes);
      this.#sizeBytes += bytes.byteLength;
    }
    return callbackOf(args);
  }
}

function callbackOf(args: readonly unknown[]): ((error?: Error) => void) | undefined {
  return args.find((arg): arg is () => void => typeof arg === "function");
}

/** Refuses data after `destroy`, as http does: its callback gets an error. Returns the value of `write`. */
function refuse(args: readonly unknown[]): false {
  const written = callbackOf(args);
  if (written !== undefined) queueMicrotask(() => written(new ResponseDestroyed()));
  return false;
}
