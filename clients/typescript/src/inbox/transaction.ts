import { RecordContendedError } from "../errors/catalogue.ts";
import type { Executor } from "./executor.ts";

/**
 * Runs a part of the caller's transaction that stands or falls as a whole: what throws leaves nothing of it, even if the
 * caller then commits the rest. Without a transaction, Postgres refuses the savepoint, before anything has happened:
 * statements that commit one by one would promise nothing.
 *
 * @throws what the part throws, unchanged.
 */
export async function inSavepoint<T>(tx: Executor, part: () => Promise<T>): Promise<T> {
  await tx("savepoint onceward", []);
  let value: T;
  try {
    value = await part();
  } catch (error) {
    await undo(tx);
    throw error;
  }
  await tx("release savepoint onceward", []);
  return value;
}

/** If this fails, the connection is gone or the transaction can't commit any more: nothing is left of it anyway. */
async function undo(tx: Executor): Promise<void> {
  try {
    await tx("rollback to savepoint onceward", []);
    await tx("release savepoint onceward", []);
  } catch {
    // The part's own error is what the caller must see.
  }
}

/** A row that was there and then was not has been swept in between, which hardly happens once. */
export const ENTRY_ATTEMPTS = 3;

/** The row is there for the constraint, and can't be read. */
export function notEntered(): RecordContendedError {
  return new RecordContendedError(
    "The key's row can't be read: row-level security hides it, or this very transaction is still writing it.",
  );
}
