import { createHmac } from "node:crypto";
import { type RecordId, recordName } from "../records/record.ts";

const HASH_BYTES = 16;

/** Returns a function that hashes a record's name under the deployment's pepper: 16 bytes, by which no key is found by trying. */
export function createRecordHash(pepper: string): (id: RecordId) => Buffer {
  const secret = createHmac("sha256", pepper).update("records in audit events").digest();
  return (id) => createHmac("sha256", secret).update(recordName(id)).digest().subarray(0, HASH_BYTES);
}

/**
 * Returns a function that names a record in audit events and in the log: by its namespace, and by the hash of its name. Events and
 * lines of one key can be matched, and the key stays secret.
 */
export function createRecordTarget(pepper: string): (id: RecordId) => string {
  const hashOf = createRecordHash(pepper);
  return (id) => `record ${id.namespace}/${hashOf(id).toString("hex")}`;
}
