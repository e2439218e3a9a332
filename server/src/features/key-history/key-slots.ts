import type { RecordId } from "../../core/domain/record.ts";
import { createRecordHash } from "../../core/domain/record-target.ts";
import type { DeclinedKey } from "./declined-keys.ts";
import type { KeySlot, StoredKey } from "./store.ts";

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
  slotOf: (id: RecordId) => KeySlot,
): readonly StoredKey[] {
  const bySlot = new Map<string, StoredKey>();
  for (const { id, ...declined } of keys) {
    const slot = slotOf(id);
    const name = `${slot.tenantId} ${slot.slot}`;
    if (!bySlot.has(name)) bySlot.set(name, { ...declined, ...slot, namespace: id.namespace });
  }
  return [...bySlot.values()];
}
