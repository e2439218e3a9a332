import type { EncryptionKey, Keyring } from "../config/keyring.ts";
import type { Refusal } from "../domain/refusal.ts";
import { nameOfRow } from "../records/engine/record-row.ts";
import {
  type RecordValues,
  SEALED_OVERHEAD_BYTES,
  type SealedRow,
  type StoredResult,
  type UnreadableCause,
  unreadable,
} from "../records/engine/record-values.ts";
import { recordName } from "../records/record.ts";
import { deriveKey, open, seal } from "./seal.ts";

/** The encrypted columns, as part of what a ciphertext is bound to. */
type Column = "payload" | "metadata" | "digest" | "checkpoint";

/**
 * Encrypts values on their way into rows, and decrypts those of rows: the only place that does.
 *
 * @param onUnreadable is called for each row that cannot be decrypted, for the metrics and the log.
 */
export function createRecordEncryption(
  { current, find }: Keyring,
  onUnreadable: (cause: UnreadableCause, keyId: number) => void,
): RecordValues {
  function reported(cause: UnreadableCause, keyId: number): Refusal {
    onUnreadable(cause, keyId);
    return unreadable(cause, keyId);
  }

  /** Returns a function that decrypts the values of one record. */
  function opener(name: string, keyId: number): Open {
    const key = find(keyId);
    if (key === undefined) throw reported("key_missing", keyId);
    const own = deriveKey(key, "record", name);
    return (value, column) => {
      const plain = open(own, value, placeOf(name, column));
      if (plain === undefined) throw reported("not_authentic", keyId);
      return plain;
    };
  }

  return {
    keyId: current?.id ?? null,

    storedResult: (id, plain) =>
      current === undefined ? plain : sealedResult(current, recordName(id), plain),

    storedState(id, state) {
      if (current === undefined) return state;
      const name = recordName(id);
      return seal(deriveKey(current, "record", name), state, placeOf(name, "checkpoint"));
    },

    openRow(row) {
      const resultKeyId = row.result_key_id ?? undefined;
      const checkpointKeyId = row.checkpoint_key_id ?? undefined;
      if (resultKeyId === undefined && checkpointKeyId === undefined) return row;
      const name = nameOfRow(row);
      return {
        ...row,
        ...(resultKeyId !== undefined && openedResult(row, opener(name, resultKeyId))),
        ...(checkpointKeyId !== undefined && openedCheckpoint(row, opener(name, checkpointKeyId))),
      };
    },
  };
}

function sealedResult(
  key: EncryptionKey,
  name: string,
  { digest, payload, metadata }: StoredResult,
): StoredResult {
  const own = deriveKey(key, "record", name);
  return {
    // Encrypted, because anybody can compute the digest of a result that is easy to guess.
    digest: seal(own, digest, placeOf(name, "digest")),
    payload: payload && seal(own, payload, placeOf(name, "payload")),
    metadata: metadata && seal(own, Buffer.from(metadata), placeOf(name, "metadata")).toString("base64url"),
  };
}

/** Decrypts a value of one record. */
type Open = (value: Uint8Array, column: Column) => Buffer;

function openedResult(row: SealedRow, open: Open): Partial<SealedRow> {
  const { result_digest: digest, result_metadata: metadata, result_payload: payload } = row;
  const resultBytes = row.result_bytes ?? undefined;
  return {
    ...(digest && { result_digest: open(Buffer.from(digest, "hex"), "digest").toString("hex") }),
    ...(metadata && { result_metadata: open(Buffer.from(metadata, "base64url"), "metadata").toString() }),
    ...(payload && { result_payload: open(payload, "payload") }),
    ...(resultBytes !== undefined && { result_bytes: resultBytes - SEALED_OVERHEAD_BYTES }),
  };
}

function openedCheckpoint({ checkpoint_state: state }: SealedRow, open: Open): Partial<SealedRow> {
  return state ? { checkpoint_state: open(state, "checkpoint") } : {};
}

function placeOf(name: string, column: Column): string {
  return `${column}:${name}`;
}
