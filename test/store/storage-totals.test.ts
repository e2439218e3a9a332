import { expect, test } from "vitest";
import { createStorageTotals } from "../../server/src/access/storage-totals.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";

test("the changes of all tenants are stored, however many change", async () => {
  const database = await createDatabaseOfTest();
  const pool = openStorePool(database);
  const tenants = await database.query<{ id: number }>(
    `insert into tenants (name, quota_live_records) select 'many-' || n, 10 from generate_series(1, 2500) n returning id`,
  );
  const totals = createStorageTotals({ pool, onFailed: (error) => expect.unreachable(String(error)) });
  for (const { id } of tenants) totals.add({ tenantId: id, records: 1, storedBytes: 2 });
  await totals.stop();
  const [stored] = await database.query(
    `select count(*)::int as tenants, min(records)::int as records, min(stored_bytes)::int as bytes
       from tenant_totals join tenants on id = tenant_id where name like 'many-%' and records > 0`,
  );
  expect(stored).toEqual({ tenants: 2500, records: 1, bytes: 2 });
});
