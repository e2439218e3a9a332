import { Refusal } from "../domain/refusal.ts";

/** A refusal of a message as a whole, before it has fields that could be named. `description` follows "The message". */
export function malformed(description: string, cause?: unknown): Refusal {
  const violations = [{ field: "message", description }];
  return new Refusal("INVALID_REQUEST", `The message ${description}.`, { violations, cause });
}

/** The refusal of a message that is too large; `actualBytes` is undefined if not all of it came. */
export function tooLarge(maxBytes: number, actualBytes: number | undefined): Refusal {
  const actual = actualBytes === undefined ? "" : `, is ${actualBytes}`;
  return malformed(`must be at most ${maxBytes} bytes${actual}`);
}
