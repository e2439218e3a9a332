import { digestSecret, formatApiKey, generateApiKey } from "../../../server/src/core/auth/api-key.ts";
import { TEST_PEPPER } from "../../helpers/servers/server.ts";
import type { BenchDatabase } from "./database.ts";

/** Creates `count` tenants in one statement, and returns a caller's API key of each. */
export async function createTenants(database: BenchDatabase, count: number): Promise<readonly string[]> {
  const keys = Array.from({ length: count }, generateApiKey);
  await database.query(
    `with input as (
       select * from unnest($1::text[], $2::bytea[]) with ordinality as i (id, digest, number)
     ), made as (
       insert into tenants (name) select 'grown-' || number from input returning id, name
     )
     insert into api_keys (id, tenant_id, role, digest)
     select input.id, made.id, 'CALLER', input.digest from input join made on made.name = 'grown-' || number`,
    [keys.map(({ id }) => id), keys.map(({ secret }) => digestSecret(secret, TEST_PEPPER))],
  );
  return keys.map(formatApiKey);
}
