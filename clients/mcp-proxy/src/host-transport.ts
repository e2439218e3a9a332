import type { Readable, Writable } from "node:stream";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type JSONRPCMessage, JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js";
import { parseExact } from "./exact-json.ts";
import { messageOf } from "./failure.ts";

/** A message of a host that is longer is skipped. 10 MiB, as the protocol's SDK has it. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;

/** What a host may leave unread: several of the longest messages. Standard output keeps it in memory. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/**
 * The host's side of the stdio transport: one message on each line. Unlike the SDK's, it keeps numbers exact, and skips a
 * message that is too long or not valid, with an error to `onerror`, instead of closing. It closes if the host does not read.
 */
export class HostTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;
  readonly #input: Readable;
  readonly #output: Writable;
  #chunks: Buffer[] = [];
  #bytes = 0;

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
      if (line.trim() !== "") this.onmessage?.(checked(parseExact(line)));
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(messageOf(error)));
    }
  }
}

/** Returns the value itself, not the schema's copy, which may skip what it does not know. @throws ZodError. */
function checked(value: unknown): JSONRPCMessage {
  JSONRPCMessageSchema.parse(value);
  return value as JSONRPCMessage;
}
