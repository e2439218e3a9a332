import { Buffer } from "node:buffer";
import type { ServerResponse } from "node:http";
import { MAX_RESULT_BYTES } from "../limits.ts";
import { type Handled, ResponseCut } from "./guard.ts";

/**
 * Holds back what is written to a response of node:http, from now until `send`: nothing reaches the socket before the
 * outcome is stored. To whoever writes it, it looks like a response on its way.
 */
export class HeldResponse {
  /**
   * Resolves once the response is whole, or larger than any policy takes. Rejects with ResponseCut if it never will be:
   * it was destroyed, or its client left in the middle of it. A client that leaves earlier changes nothing.
   */
  readonly handled: Promise<Handled<HeldResponse>>;
  readonly #response: ServerResponse;
  readonly #original: Pick<ServerResponse, "write" | "end" | "writeHead" | "flushHeaders" | "destroy">;
  readonly #chunks: Buffer[] = [];
  #sizeBytes = 0;
  #begun = false;
  #ended = false;
  #onFinish: (() => void) | undefined;

  constructor(response: ServerResponse) {
    const { write, end, writeHead, flushHeaders, destroy } = response;
    this.#response = response;
    this.#original = { write, end, writeHead, flushHeaders, destroy };
    this.handled = new Promise((resolve, reject) => this.#hold(resolve, reject));
  }

  /** Sends what was held back, and lets the response be as it was. */
  send(): void {
    const response = this.#response;
    Object.assign(response, this.#original);
    Reflect.deleteProperty(response, "headersSent");
    const body = Buffer.concat(this.#chunks);
    if (this.#ended) response.end(body, this.#onFinish);
    else if (response.write(body)) response.emit("drain");
  }

  #hold(resolve: (handled: Handled<HeldResponse>) => void, reject: (error: Error) => void): void {
    const response = this.#response;
    const progress = () => {
      const tooLarge = this.#sizeBytes > MAX_RESULT_BYTES;
      if (!tooLarge && !this.#ended) return;
      const body = tooLarge ? undefined : Buffer.concat(this.#chunks);
      resolve({ status: response.statusCode, headers: response.getHeaders(), body, sent: this });
    };
    Object.defineProperty(response, "headersSent", { configurable: true, get: () => this.#begun });
    Object.assign(response, {
      writeHead: (...head: readonly unknown[]) => {
        this.#begun = true;
        setHead(response, head);
        return response;
      },
      flushHeaders: () => {
        this.#begun = true;
      },
      write: (...args: readonly unknown[]) => {
        const written = this.#keep(args);
        if (written !== undefined) queueMicrotask(written);
        progress();
        return this.#sizeBytes <= MAX_RESULT_BYTES;
      },
      end: (...args: readonly unknown[]) => {
        if (this.#ended) return response;
        this.#onFinish = this.#keep(args);
        this.#ended = true;
        progress();
        return response;
      },
      destroy: (error?: Error) => {
        reject(new ResponseCut());
        return this.#original.destroy.call(response, error);
      },
    });
    response.once("close", () => {
      if (this.#begun && !this.#ended) reject(new ResponseCut());
    });
  }

  /** Takes the arguments of `write` and `end`: a chunk, its encoding, a callback, each of which may be missing. */
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
    return args.find((arg): arg is () => void => typeof arg === "function");
  }
}

/** Applies the arguments of `writeHead`: the status, its message, and headers as an object or as a flat list. */
function setHead(response: ServerResponse, head: readonly unknown[]): void {
  const [status, ...rest] = head;
  response.statusCode = Number(status);
  for (const part of rest) {
    if (typeof part === "string") response.statusMessage = part;
    else if (Array.isArray(part)) setFlatHeaders(response, part.flat());
    else if (part !== null && typeof part === "object") {
      for (const [name, value] of Object.entries(part))
        if (value !== undefined) response.setHeader(name, value);
    }
  }
}

function setFlatHeaders(response: ServerResponse, flat: readonly string[]): void {
  for (let index = 0; index + 1 < flat.length; index += 2) response.removeHeader(flat[index] ?? "");
  for (let index = 0; index + 1 < flat.length; index += 2) {
    response.appendHeader(flat[index] ?? "", flat[index + 1] ?? "");
  }
}
