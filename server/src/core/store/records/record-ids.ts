import { type RecordId, recordName } from "../../domain/record.ts";
import { intArray, textArray } from "../sql-arrays.ts";

/**
 * Returns the ids as arrays in the order of the primary key: parameters 1 to 3 of every batched statement on
 * records.
 */
export function idColumns(ids: readonly RecordId[]): readonly Buffer[] {
  return [
    intArray(ids.map((id) => id.tenantId)),
    textArray(ids.map((id) => id.namespace)),
    textArray(ids.map((id) => id.key)),
  ];
}

/** The primary key, as `pg` parses it. */
export interface IdRow {
  readonly tenant_id: number;
  readonly namespace: string;
  readonly key: string;
}

/** Returns `recordName` of a row's id. */
export function nameOfRow({ tenant_id, namespace, key }: IdRow): string {
  return recordName({ tenantId: tenant_id, namespace, key });
}
