import type { Check } from "../findings.ts";

const readExportSlots = {
  name: "read_export_slots",
  text: `
select slot_name || ' (' || case when active then 'active' else 'inactive' end || ', ' || wal_status || ')' as slot
  from pg_replication_slots
 where database = current_database() and slot_name like 'onceward\\_%' and (not active or wal_status in ('unreserved', 'lost'))`,
};

/** Looks whether an export of the history reads, and early enough. */
export const exportsCheck: Check = {
  name: "exports",
  async examine({ runner }) {
    const slots = await runner.run<{ slot: string }>(readExportSlots, []);
    return slots.map(({ slot }) => ({
      id: "export_behind",
      summary: `Nothing reads the slot ${slot} in time: Postgres keeps its log until max_slot_wal_keep_size, then events are lost.`,
    }));
  },
};
