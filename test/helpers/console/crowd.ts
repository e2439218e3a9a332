import type { Addresses } from "../../../server/src/server.ts";
import { connectClient } from "../calls/clients.ts";
import { copyRecord } from "../calls/records.ts";
import { complete, ORDER } from "../calls/verbs.ts";
import type { TestDatabase } from "../database/database.ts";
import { createTenant, type TestTenant } from "../servers/tenants.ts";
import { plantJob } from "./seed.ts";

/** A tenant with many namespaces, and its finished job. */
export interface Crowd {
  readonly tenant: TestTenant;
  readonly jobId: string;
}

/** Creates a tenant with many namespaces, each with its own policy, and many completed records, in SQL. */
export async function plantCrowd(
  server: Addresses,
  database: TestDatabase,
  { namespaces, records }: { readonly namespaces: number; readonly records: number },
): Promise<Crowd> {
  const tenant = await createTenant(database);
  await complete(connectClient(server, tenant.apiKey));
  await database.query(
    `insert into namespaces (tenant_id, name, key_retention_s)
     select $1, 'crowd-' || lpad(n::text, 6, '0'), 86400 from generate_series(1, $2::int) n`,
    [tenant.id, namespaces],
  );
  await copyRecord(database, tenant, ORDER.key, {
    count: records,
    keySql: "'crowd-' || lpad(n::text, 6, '0')",
  });
  return { tenant, jobId: await plantJob(database, tenant.id) };
}
