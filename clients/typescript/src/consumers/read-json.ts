import { Buffer } from "node:buffer";
import { TerminalError } from "../errors/errors.ts";

/**
 * A message's body as JSON. For use within the guarded function: a body that can't be read won't be readable next time,
 * so it is stored as the operation's failure and not delivered again.
 *
 * @throws TerminalError for what is no JSON.
 */
export function readJson(body: string | Uint8Array | null | undefined): unknown {
  try {
    return JSON.parse(typeof body === "string" ? body : Buffer.from(body ?? []).toString());
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : `${cause}`;
    throw new TerminalError(`The message's body is no JSON: ${why}`, undefined, { cause });
  }
}
