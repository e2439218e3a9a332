import { OncewardError } from "../errors/errors.ts";
import type { Executor } from "./executor.ts";

/**
 * Runs a part of the caller's transaction that takes effect as a whole or not at all: if it throws, nothing of it
 * remains, even if the caller then commits the rest. Without a transaction, Postgres refuses the savepoint before
 * anything has happened: statements that commit one by one would guarantee nothing.
 *
 * @throws the error of the part, unchanged.
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

/**
 * Undoes the part. If this fails, the connection is gone or the transaction can't commit: nothing of the part
 * remains.
 */
async function undo(tx: Executor): Promise<void> {
  try {
    await tx("rollback to savepoint onceward", []);
    await tx("release savepoint onceward", []);
  } catch {
    // The caller must see the part's own error.
  }
}

/** A row that disappears between two statements was swept in between, which hardly happens even once. */
export const ENTRY_ATTEMPTS = 3;

/** Returns the error of a key whose row exists for the unique constraint, but can't be read. */
export function notEntered(): OncewardError {
  return new OncewardError(
    "RECORD_CONTENDED",
    "The key's row can't be read: row-level security hides it, or this very transaction is still writing it.",
  );
}
