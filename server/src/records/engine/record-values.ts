import { Refusal } from "../../domain/refusal.ts";
import type { RecordId } from "../record.ts";
import type { RecordRow } from "./record-row.ts";

/** What encryption adds to a value: nonce and tag. */
export const SEALED_OVERHEAD_BYTES = 28;

/** The columns of a result that are stored as `RecordValues` decides. */
export interface StoredResult {
  readonly digest: Uint8Array;
  /** Undefined: the sweep has dropped it. */
  readonly payload: Uint8Array | undefined;
  /** JSON; if encrypted, in base64url. Undefined: there is none. */
  readonly metadata: string | undefined;
}

/**
 * How values are stored in rows: in plain form, or encrypted by the feature `encryption`. Keys, owners, fingerprints, the
 * names of checkpoints, content types and reasons are always in plain form.
 */
export interface RecordValues {
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

/** A row with all its values, as statements on values alone read them. */
export type ValuesRow = Required<Omit<SealedRow, "result_bytes">>;

/** Stores values in plain form, and reads no others. */
export const PLAIN_VALUES: RecordValues = {
  keyId: null,
  storedResult: (_, plain) => plain,
  storedState: (_, state) => state,
  openRow(row) {
    const keyId = row.result_key_id ?? row.checkpoint_key_id ?? undefined;
    if (keyId !== undefined) throw unreadable("key_missing", keyId);
    return row;
  },
};

/** Why a row cannot be decrypted. */
export type UnreadableCause = "key_missing" | "not_authentic";

/** Returns the error of a row that cannot be decrypted. */
export function unreadable(cause: UnreadableCause, keyId: number): Refusal {
  const why =
    cause === "key_missing"
      ? "this server does not have its encryption key"
      : "what is stored does not belong to it, or was altered";
  return new Refusal("RECORD_UNREADABLE", `The record cannot be decrypted: ${why}.`, {
    metadata: { cause, encryption_key: String(keyId) },
  });
}
