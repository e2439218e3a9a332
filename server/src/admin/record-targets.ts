import { createHmac } from "node:crypto";
import { type RecordId, recordName } from "../domain/record.ts";

const HASH_BYTES = 16;

/**
 * Names a record in an audit event: its namespace, and a hash of its key under the deployment's pepper, so that events of
 * one key can be told from others' and the key can't be told at all.
 */
export function createRecordTarget(pepper: string): (id: RecordId) => string {
  const secret = createHmac("sha256", pepper).update("records in audit events").digest();
  return (id) => {
    const hash = createHmac("sha256", secret).update(recordName(id)).digest().subarray(0, HASH_BYTES);
    return `record ${id.namespace}/${hash.toString("hex")}`;
  };
}
