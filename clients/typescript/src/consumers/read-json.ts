import { Buffer } from "node:buffer";
import { TerminalError } from "../errors/errors.ts";

/**
 * Returns a message's body, parsed as JSON. For use within the guarded function: a body that can't be parsed now
 * can't be parsed on the next delivery, so the TerminalError is stored and the message is not delivered again.
 *
 * @throws TerminalError for a body that is not JSON.
 */
export function readJson(body: string | Uint8Array | null | undefined): unknown {
  try {
    return JSON.parse(typeof body === "string" ? body : Buffer.from(body ?? []).toString());
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : `${cause}`;
    throw new TerminalError(`The message's body is not JSON: ${why}`, undefined, { cause });
  }
}
