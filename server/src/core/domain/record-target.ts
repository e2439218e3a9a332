import { createHmac } from "node:crypto";
import { type RecordId, recordName } from "./record.ts";

const HASH_BYTES = 16;

/**
 * Returns a function that names a record in audit events and in the log: by its namespace, and by a hash of its key under the
 * deployment's pepper. Events and lines of one key can be matched, and the key stays secret.
 */
export function createRecordTarget(pepper: string): (id: RecordId) => string {
  const secret = createHmac("sha256", pepper).update("records in audit events").digest();
  return (id) => {
    const hash = createHmac("sha256", secret).update(recordName(id)).digest().subarray(0, HASH_BYTES);
    return `record ${id.namespace}/${hash.toString("hex")}`;
  };
}
