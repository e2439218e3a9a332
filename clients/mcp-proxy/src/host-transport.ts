import type { Readable, Writable } from "node:stream";
import { ErrorCode, type JSONRPCMessage, JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js";
import { parseExact } from "./exact-json.ts";
import { messageOf } from "./failure.ts";

/** A message of a host that is longer is skipped. 10 MiB, as the protocol's SDK has it. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;

/** What a host may leave unread: several of the longest messages. Standard output keeps it in memory. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/** What may wait for the server, and for claims, before reading pauses: several of the longest messages. */
const MAX_UNHANDLED_BYTES = 64 * 1024 * 1024;
/** What a message takes beside its text, about: without it, a million short ones could wait. */
const MESSAGE_OVERHEAD_BYTES = 4096;

/**
 * The host's side of the stdio transport: one message on each line. Unlike the SDK's, it keeps numbers exact, and skips a
 * message that is too long or not valid, with an error to `onerror`, instead of closing. It closes if the host does not read,
 * and does not read on while too much is not handled.
 */
export class HostTransport {
  /** Resolves once the message no longer needs memory. */
  onmessage?: (message: JSONRPCMessage) => Promise<void>;
  onerror?: (error: Error) => void;
  onclose?: () => void;
  readonly #input: Readable;
  readonly #output: Writable;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #unhandledBytes = 0;
  #isClosed = false;

  constructor(input: Readable, output: Writable) {
    this.#input = input;
    this.#output = output;
  }

  async start(): Promise<void> {
    this.#input.on("data", this.#read);
    this.#input.on("error", this.#fail);
    this.#input.once("end", () => this.onclose?.());
  }

  /** @throws Error if the host has left too much unread. Then the transport has closed. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#output.writableLength > MAX_UNREAD_BYTES) {
      this.onclose?.();
      throw new Error(`the host has left more than ${MAX_UNREAD_BYTES} bytes unread`);
    }
    if (this.#output.write(`${JSON.stringify(message)}\n`)) return;
    await new Promise((resolve) => this.#output.once("drain", resolve));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#input.off("data", this.#read);
    this.#input.pause();
  }

  readonly #fail = (error: Error) => this.onerror?.(error);

  readonly #read = (chunk: Buffer) => {
    let rest = chunk;
    for (let end = rest.indexOf("\n"); end !== -1; end = rest.indexOf("\n")) {
      this.#keep(rest.subarray(0, end));
      this.#endLine();
      rest = rest.subarray(end + 1);
    }
    this.#keep(rest);
  };

  /** Keeps a part of a line; of a line that is too long, only its length. */
  #keep(part: Buffer): void {
    this.#bytes += part.byteLength;
    if (this.#bytes > MAX_MESSAGE_BYTES) this.#chunks = [];
    else this.#chunks.push(part);
  }

  #endLine(): void {
    const [line, bytes] = [Buffer.concat(this.#chunks).toString(), this.#bytes];
    this.#chunks = [];
    this.#bytes = 0;
    try {
      if (bytes > MAX_MESSAGE_BYTES)
        throw new Error(`a message of ${bytes} bytes is skipped; at most ${MAX_MESSAGE_BYTES} are read`);
      if (line.trim() === "") return;
      const value = parseExact(line);
      // The value itself is passed on, not the schema's copy, which may skip what it does not know.
      if (!JSONRPCMessageSchema.safeParse(value).success) this.#refuse(value);
      else void this.#handle(value as JSONRPCMessage, bytes + MESSAGE_OVERHEAD_BYTES);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(messageOf(error)));
    }
  }

  /** Answers each request in what is not a message, such as a batch. */
  #refuse(value: unknown): void {
    const error = {
      code: ErrorCode.InvalidRequest,
      message: "onceward: NOT RUN: not a message of JSON-RPC.",
    };
    for (const { id, method } of [value].flat().map(Object))
      if (method !== undefined && id !== undefined)
        void this.send({ jsonrpc: "2.0", id, error }).catch(this.#fail);
    this.#fail(new Error(error.message));
  }

  async #handle(message: JSONRPCMessage, bytes: number): Promise<void> {
    this.#unhandledBytes += bytes;
    if (this.#unhandledBytes > MAX_UNHANDLED_BYTES) this.#input.pause();
    try {
      await this.onmessage?.(message);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(messageOf(error)));
    }
    this.#unhandledBytes -= bytes;
    const readsOn = this.#unhandledBytes <= MAX_UNHANDLED_BYTES && !this.#isClosed;
    if (readsOn && this.#input.isPaused()) this.#input.resume();
  }
}
