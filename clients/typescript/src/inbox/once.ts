import { Buffer } from "node:buffer";
import { FingerprintMismatchError } from "../errors/catalogue.ts";
import type { Violation } from "../errors/errors.ts";
import { checkText, throwIfAny } from "../errors/violations.ts";
import { fingerprintWithFiles } from "../keys/fingerprint.ts";
import { decodeJson, encodeJson } from "../run/codec.ts";
import type { Jsonify } from "../run/jsonify.ts";
import type { RunOptions } from "../run/run-options.ts";
import { utf8Bytes, utf8Text } from "../wire/bytes.ts";
import { MAX_KEY_BYTES } from "../wire/limits.ts";
import type { Executor, TextRow } from "./executor.ts";
import { ENTRY_ATTEMPTS, inSavepoint, notEntered } from "./transaction.ts";

/** Identifies a message that is handled once. */
export interface InboxMessage {
  /** The name of the consumer, such as the consumer group: each consumer handles the same key once. 1-255 bytes. */
  readonly consumer: string;
  /** The operation's key, the same on every delivery: 1-255 bytes of UTF-8 without control characters. */
  readonly key: string;
  /** The request that the key belongs to, as in `RunOptions`. The same key with another fingerprint is refused. */
  readonly fingerprint?: unknown;
  /**
   * `at-most-once`: if the function threw, the transaction may commit the key's row without its writes, so that the message is not
   * handled again, and a repeat gets undefined. Default: an error undoes the row, too.
   */
  readonly mode?: RunOptions["mode"];
}

/** The outcome of a message. */
export interface OnceResult<T> {
  /** The value that the function returned, now or before, read from its JSON. */
  readonly value: T;
  /** Whether the value was returned before. */
  readonly replayed: boolean;
}

/**
 * Runs the function unless this consumer has handled the key before, in the transaction that the caller began and
 * will commit: the key's row and the function's writes commit together, or not at all.
 *
 * ```ts
 * import { once, pgExecutor } from "@onceward/client/inbox";
 *
 * await client.query("begin");
 * const { value, replayed } = await once(
 *   pgExecutor(client),
 *   { consumer: "billing", key: event.id, fingerprint: event.data },
 *   async () => {
 *     const { rows } = await client.query("insert into invoices … returning id");
 *     return rows[0].id;
 *   },
 * );
 * await client.query("commit");
 * message.ack(); // Only now.
 * ```
 *
 * - While another transaction handles the key, this one waits for it to end, and then replays its value or runs the
 *   function. (At the isolation levels above READ COMMITTED, Postgres fails the later one with 40001: repeat the
 *   transaction.)
 * - An error of the function is rethrown unchanged, and its writes are undone, even if the transaction commits.
 * - The value is a JSON value of any size, or undefined. Small values, such as an id, are better.
 * - Effects outside this database are repeated if the transaction is: pass them a derived key, or use `run`.
 * - A transaction runs one statement at a time: don't start another one on it before the function has returned.
 *
 * @throws InvalidRequestError, FingerprintMismatchError, OncewardError RESULT_NOT_JSON: the writes are undone.
 * @throws the driver's error of a statement; outside a transaction, 25P01.
 */
export async function once<T>(
  tx: Executor,
  message: InboxMessage,
  fn: () => T | Promise<T>,
): Promise<OnceResult<Jsonify<T>>> {
  const name = nameOf(message);
  const fingerprint =
    message.fingerprint === undefined ? null : hexOf(await fingerprintWithFiles(message.fingerprint));
  const outcome = await inSavepoint(tx, async () => {
    const handled = await enter(tx, name, fingerprint);
    if (handled === undefined)
      return message.mode === undefined ? { value: await handle(tx, name, fn), replayed: false } : undefined;
    if (
      fingerprint !== null &&
      typeof handled.fingerprint === "string" &&
      fingerprint !== handled.fingerprint
    ) {
      throw new FingerprintMismatchError("The key was handled before, for another request.");
    }
    return { value: decodeResult(handled.result ?? null) as Jsonify<T>, replayed: true };
  });
  // At most once: in a savepoint that does not undo the row.
  return outcome ?? { value: await inSavepoint(tx, () => handle(tx, name, fn)), replayed: false };
}

type Name = readonly [consumer: string, key: string];

function nameOf({ consumer, key, mode }: InboxMessage): Name {
  const violations: Violation[] = [];
  const limits = { minBytes: 1, maxBytes: MAX_KEY_BYTES };
  checkText(violations, "consumer", consumer, limits);
  checkText(violations, "key", key, limits);
  if (mode !== undefined && mode !== "at-most-once")
    violations.push({ field: "mode", description: 'must be "at-most-once" or unset' });
  throwIfAny(violations);
  return [consumer, key];
}

/** Inserts the key's row. Returns the row if the key was handled before; undefined if the caller must handle it. */
async function enter(tx: Executor, name: Name, fingerprint: string | null): Promise<TextRow | undefined> {
  for (let attempt = 1; attempt <= ENTRY_ATTEMPTS; attempt++) {
    const entered = await tx(
      `insert into onceward_inbox (consumer, key, fingerprint)
       values ($1::text, $2::text, decode($3::text, 'hex'))
       on conflict (consumer, key) do nothing
       returning key`,
      [...name, fingerprint],
    );
    if (entered.length > 0) return undefined;
    const [handled] = await tx(
      `select encode(fingerprint, 'hex') as fingerprint, result
         from onceward_inbox
        where consumer = $1::text and key = $2::text`,
      name,
    );
    if (handled !== undefined) return handled;
    // The row was swept between the two statements.
  }
  throw notEntered();
}

async function handle<T>(tx: Executor, name: Name, fn: () => T | Promise<T>): Promise<Jsonify<T>> {
  const value = await fn();
  // Most consumers return nothing, and then the row needs no update.
  if (value === undefined) return value as Jsonify<T>;
  const result = utf8Text(encodeJson(value));
  await tx("update onceward_inbox set result = $3::text where consumer = $1::text and key = $2::text", [
    ...name,
    result,
  ]);
  return decodeResult(result) as Jsonify<T>;
}

function decodeResult(result: string | null): unknown {
  return result === null ? undefined : decodeJson(utf8Bytes(result));
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}
