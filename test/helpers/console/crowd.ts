import type { Addresses } from "../../../server/src/server.ts";
import { connectClient } from "../calls/clients.ts";
import { complete, ORDER } from "../calls/verbs.ts";
import type { TestDatabase } from "../database/database.ts";
import { createTenant, type TestTenant } from "../servers/tenants.ts";

/** Creates a tenant with many namespaces, each with its own policy, and many completed records, in SQL. */
export async function plantCrowd(
  server: Addresses,
  database: TestDatabase,
  { namespaces, records }: { readonly namespaces: number; readonly records: number },
): Promise<TestTenant> {
  const tenant = await createTenant(database);
  await complete(connectClient(server, tenant.apiKey));
  await database.query(
    `insert into namespaces (tenant_id, name, key_retention_s)
     select $1, 'crowd-' || lpad(n::text, 6, '0'), 86400 from generate_series(1, $2::int) n`,
    [tenant.id, namespaces],
  );
  const columns = await database.query<{ name: string }>(
    `select column_name as name from information_schema.columns
      where table_schema = 'public' and table_name = 'records' and is_generated = 'NEVER'`,
  );
  const names = columns.map(({ name }) => name);
  await database.query(
    `insert into records (${names.join(", ")})
     select ${names.map((name) => `copy.${name}`).join(", ")}
       from records of_order, generate_series(1, $2::int) n,
            lateral jsonb_populate_record(of_order, jsonb_build_object('key', 'crowd-' || lpad(n::text, 6, '0'))) copy
      where of_order.tenant_id = $1 and of_order.namespace = $3`,
    [tenant.id, records, ORDER.namespace],
  );
  return tenant;
}
