import { RecordContendedError } from "../errors/catalogue.ts";

/** A row that was there and then was not has been swept in between, which hardly happens once. */
export const ENTRY_ATTEMPTS = 3;

/** The row is there for the constraint, and can't be read. */
export function notEntered(): RecordContendedError {
  return new RecordContendedError(
    "The key's row can't be read: row-level security hides it, or this very transaction is still writing it.",
  );
}
