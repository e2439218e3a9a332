import { type EncryptionKey, type Keyring, NO_KEYS } from "../../core/config/keyring.ts";
import { type RecordId, recordName } from "../../core/domain/record.ts";
import { Refusal } from "../../core/domain/refusal.ts";
import { nameOfRow } from "../../core/store/records/record-ids.ts";
import type { RecordRow } from "../../core/store/records/record-row.ts";
import { deriveKey, open, SEALED_OVERHEAD_BYTES, seal } from "./seal.ts";

/** The columns of a result that are encrypted. */
export interface StoredResult {
  readonly digest: Uint8Array;
  /** Undefined: the sweep has dropped it. */
  readonly payload: Uint8Array | undefined;
  /** JSON; if encrypted, in base64url. Undefined: there is none. */
  readonly metadata: string | undefined;
}

/**
 * Encrypts values on their way into rows, and decrypts those of rows: the only place that does. Keys, owners,
 * fingerprints, the names of checkpoints, content types and reasons stay in plain form.
 */
export interface RecordEncryption {
  /** The keys in use. */
  readonly keyring: Keyring;
  /** What `result_key_id` or `checkpoint_key_id` of a written row is. Null: in plain form. */
  readonly keyId: number | null;
  /** Returns a result as its columns hold it, from its plain form. */
  storedResult(id: RecordId, plain: StoredResult): StoredResult;
  /** Returns a checkpoint's state as its column holds it. */
  storedState(id: RecordId, state: Uint8Array): Uint8Array;
  /**
   * Returns a row with its values in plain form.
   *
   * @throws Refusal RECORD_UNREADABLE if the row's key is not configured, or a value is not the row's own.
   */
  openRow<Row extends SealedRow>(row: Row): Row;
}

/** The columns of a row that `openRow` reads. */
export type SealedRow = Pick<RecordRow, "tenant_id" | "namespace" | "key"> &
  Partial<
    Pick<
      RecordRow,
      | "result_key_id"
      | "checkpoint_key_id"
      | "result_digest"
      | "result_metadata"
      | "result_payload"
      | "result_bytes"
      | "checkpoint_state"
    >
  >;

/** Why a row cannot be decrypted. */
export type UnreadableCause = "key_missing" | "not_authentic";

/** Called for each row that cannot be decrypted, for the metrics and the log. */
export type OnUnreadable = (cause: UnreadableCause, keyId: number) => void;

/** The encrypted columns, as part of what a ciphertext is bound to. */
type Column = "payload" | "metadata" | "digest" | "checkpoint";

/** @see RecordEncryption */
export function createRecordEncryption(keyring: Keyring, onUnreadable: OnUnreadable): RecordEncryption {
  const { current } = keyring;

  function unreadable(cause: UnreadableCause, keyId: number): Refusal {
    onUnreadable(cause, keyId);
    const why =
      cause === "key_missing"
        ? "this server does not have its encryption key"
        : "what is stored does not belong to it, or was altered";
    return new Refusal("RECORD_UNREADABLE", `The record cannot be decrypted: ${why}.`, {
      metadata: { cause, encryption_key: String(keyId) },
    });
  }

  /** Returns a function that decrypts the values of one record. */
  function opener(name: string, keyId: number): Open {
    const key = keyring.find(keyId);
    if (key === undefined) throw unreadable("key_missing", keyId);
    const own = deriveKey(key, "record", name);
    return (value, column) => {
      const plain = open(own, value, placeOf(name, column));
      if (plain === undefined) throw unreadable("not_authentic", keyId);
      return plain;
    };
  }

  return {
    keyring,
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

/** Neither encrypts nor decrypts. */
export const WITHOUT_KEYS = createRecordEncryption(NO_KEYS, () => {});

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
