import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { textArray } from "../../database/sql-arrays.ts";
import { listedRecord, RECORD_SELECT, type RecordRow, STATE } from "../../records/engine/record-row.ts";
import type { LiveRecord } from "../../records/record.ts";
import { findNamespacesInUse, NAMESPACES_PER_LOOK } from "../namespaces/namespaces-in-use.ts";
import type { Scan } from "../pages.ts";
import { findRecords, type RecordCursor, type RecordFilter, startOf } from "./find-records.ts";

/**
 * Finds the record with a key in each of these namespaces by one search of the primary key. The namespaces come from a
 * statement of their own, because Citus does not read records for a function in a statement on records.
 */
const selectKey = {
  name: "select_key",
  text: `
select ${RECORD_SELECT},
       null::bytea as checkpoint_state, null::text as result_metadata, null::bytea as result_payload
  from unnest($2::text[]) as i (namespace)
  join records r
    on r.tenant_id = $1::int
   and r.namespace = i.namespace
   and r.key = $3::text
 where r.state <> ${STATE.forgotten}
   and r.expires_at > ${nowBy("$5")}
 order by r.namespace
 limit $4::int`,
};

/**
 * Returns the records of a tenant with exactly this key, up to `limit`, in the first NAMESPACES_PER_LOOK namespaces after
 * `afterNamespace`: without payloads, results' metadata and the states of checkpoints. The next search begins after the namespace
 * `next`; undefined: there are no more.
 *
 * @param latestMs as DatabaseClock: a record is listed until its retention ends by the previous clock.
 */
export async function findKey(
  runner: Runner,
  { tenantId, key }: { readonly tenantId: number; readonly key: string },
  afterNamespace: string,
  limit: number,
  latestMs?: number,
): Promise<Scan<LiveRecord, string>> {
  const namespaces = await findNamespacesInUse(runner, tenantId, afterNamespace, NAMESPACES_PER_LOOK);
  if (namespaces.length === 0) return { items: [], next: undefined };
  const names = textArray(namespaces.map(({ name }) => name));
  const rows = await runner.run<RecordRow>(selectKey, [tenantId, names, key, limit, latestMs ?? null]);
  const items = rows.map((row) => listedRecord(row, latestMs));
  if (rows.length === limit) return { items, next: rows.at(-1)?.namespace };
  const wasFull = namespaces.length === NAMESPACES_PER_LOOK;
  return { items, next: wasFull ? namespaces.at(-1)?.name : undefined };
}

/** Namespaces that one scan for the beginning of a key searches: a statement for each. */
const NAMESPACES_PER_SCAN = 20;

/**
 * Returns the first records from a position on that match a filter with the beginning of a key and without a namespace, up to
 * `limit`: each namespace is searched by the range of its primary key, so that no record with another beginning is read. A position
 * without a key is after the whole namespace.
 *
 * @param latestMs as `findKey`.
 */
export async function findKeyPrefix(
  runner: Runner,
  filter: RecordFilter,
  from: RecordCursor,
  limit: number,
  latestMs?: number,
): Promise<Scan<LiveRecord, RecordCursor>> {
  const items: LiveRecord[] = [];
  const others = await findNamespacesInUse(runner, filter.tenantId, from.namespace, NAMESPACES_PER_SCAN);
  const unfinished = from.key === "" ? [] : [from.namespace];
  for (const namespace of [...unfinished, ...others.map(({ name }) => name)]) {
    const range = { ...filter, namespace };
    const start = namespace === from.namespace ? from : startOf(range);
    const found = await findRecords(runner, range, start, limit - items.length, latestMs);
    items.push(...found.items);
    if (found.next !== undefined) return { items, next: found.next };
  }
  const last = others.length === NAMESPACES_PER_SCAN ? others.at(-1) : undefined;
  return { items, next: last && { namespace: last.name, key: "" } };
}
