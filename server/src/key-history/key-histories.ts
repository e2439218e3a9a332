import type { Runner } from "../database/pool.ts";
import { bigintArray, byteaArray, float8Array, intArray, textArray } from "../database/sql-arrays.ts";
import { createRecordHash } from "../domain/record-target.ts";
import type { RecordId } from "../records/record.ts";
import { DECLINED, type Declined, type DeclinedKey, MAX_CALLS } from "./declined-keys.ts";

/** A key by its hash, and the row that it takes. */
export interface KeySlot {
  readonly tenantId: number;
  readonly slot: number;
  readonly hash: Buffer;
}

/** What was declined of a key, and its row. */
export type StoredKey = KeySlot & Omit<DeclinedKey, "id"> & { readonly namespace: string };

/** Rows of a tenant: with 8 calls each at most 16 MiB. A key that is repeated takes the row of another one in 16,384. */
const SLOTS = 16_384;

/** Returns a function that gives a key its row. @param pepper the same on all replicas. */
export function createKeySlots(pepper: string): (id: RecordId) => KeySlot {
  const hashOf = createRecordHash(pepper);
  return (id) => {
    const hash = hashOf(id);
    return { tenantId: id.tenantId, slot: hash.readUInt32BE(0) % SLOTS, hash };
  };
}

/** Returns the keys with their rows, one for each row: the first of those that share it. */
export function withSlots(
  keys: readonly DeclinedKey[],
  slotOf: ReturnType<typeof createKeySlots>,
): readonly StoredKey[] {
  const bySlot = new Map<string, StoredKey>();
  for (const { id, ...declined } of keys) {
    const slot = slotOf(id);
    const name = `${slot.tenantId} ${slot.slot}`;
    if (!bySlot.has(name)) bySlot.set(name, { ...declined, ...slot, namespace: id.namespace });
  }
  return [...bySlot.values()];
}

const COUNTERS = DECLINED.join(", ");
const FIRST_COUNTER = 8;
const COUNTER_ARRAYS = DECLINED.map((_, index) => `$${index + FIRST_COUNTER}::bigint[]`).join(", ");
const IS_SAME = "h.key_hash = excluded.key_hash";

/** Rows are locked in the order of their keys. Keys of a removed tenant are dropped. */
const storeRows = {
  name: "store_key_histories",
  text: `
insert into key_histories as h (tenant_id, slot, namespace, key_hash, first_at, last_at, calls, ${COUNTERS})
select i.tenant_id, i.slot, i.namespace, i.key_hash, to_timestamp(i.first_ms / 1000), to_timestamp(i.last_ms / 1000),
       i.calls::jsonb, ${DECLINED.map((name) => `i.${name}`).join(", ")}
  from unnest($1::int[], $2::int[], $3::text[], $4::bytea[], $5::float8[], $6::float8[], $7::text[], ${COUNTER_ARRAYS})
    as i (tenant_id, slot, namespace, key_hash, first_ms, last_ms, calls, ${COUNTERS})
 where exists (select 1 from tenants t where t.id = i.tenant_id offset 0)
 order by i.tenant_id, i.slot
on conflict (tenant_id, slot) do update set
  namespace = excluded.namespace,
  key_hash = excluded.key_hash,
  first_at = case when ${IS_SAME} then least(h.first_at, excluded.first_at) else excluded.first_at end,
  last_at = case when ${IS_SAME} then greatest(h.last_at, excluded.last_at) else excluded.last_at end,
  calls = case when ${IS_SAME}
    then jsonb_path_query_array(h.calls || excluded.calls, '$[last - ${MAX_CALLS - 1} to last]')
    else excluded.calls end,
  ${DECLINED.map((name) => `${name} = case when ${IS_SAME} then h.${name} else 0 end + excluded.${name}`).join(",\n  ")}`,
};

/** A call as it is stored. */
export type CallRow = readonly [atMs: number, outcome: Declined, actor: string, requestId: string];

/** Adds what was declined of keys; each has a row of its own. A key that had the row before is forgotten. */
export async function storeKeyHistories(runner: Runner, keys: readonly StoredKey[]): Promise<void> {
  const callsOf = ({ calls }: StoredKey) =>
    calls.map(({ atMs, outcome, actor, requestId }): CallRow => [atMs, outcome, actor, requestId]);
  await runner.run(storeRows, [
    intArray(keys.map(({ tenantId }) => tenantId)),
    intArray(keys.map(({ slot }) => slot)),
    textArray(keys.map(({ namespace }) => namespace)),
    byteaArray(keys.map(({ hash }) => hash)),
    float8Array(keys.map(({ firstAtMs }) => firstAtMs)),
    float8Array(keys.map(({ lastAtMs }) => lastAtMs)),
    textArray(keys.map((key) => JSON.stringify(callsOf(key)))),
    ...DECLINED.map((name) => bigintArray(keys.map(({ counts }) => counts[name]))),
  ]);
}

const removeOfNamespace = {
  name: "remove_key_histories",
  text: "delete from key_histories where tenant_id = $1::int and namespace = $2::text",
};

/** Removes what is kept of a namespace's keys: reads all rows of the tenant, whose number is bounded. */
export async function removeKeyHistories(
  transaction: Runner,
  tenantId: number,
  namespace: string,
): Promise<void> {
  await transaction.run(removeOfNamespace, [tenantId, namespace]);
}
