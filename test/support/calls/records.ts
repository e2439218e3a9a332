import type {
  Claimed,
  ClaimResponse,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { TestDatabase } from "../database/database.ts";
import type { TestTenant } from "../servers/tenants.ts";

/** Returns the claim that was granted. @throws if the answer is another one. */
export function granted({ outcome }: ClaimResponse): Claimed {
  if (outcome.case !== "claimed") throw new Error(`the claim was answered ${outcome.case}`);
  return outcome.value;
}

/** Returns the granted claims of these answers. */
export function grantsAmong(replies: readonly ClaimResponse[]): Claimed[] {
  return replies.flatMap(({ outcome }) => (outcome.case === "claimed" ? [outcome.value] : []));
}

/** Sets the end of the leases of a tenant's records, or of one of them, to a second ago. */
export async function endLeases(
  database: Pick<TestDatabase, "query">,
  tenant: TestTenant,
  key?: string,
): Promise<void> {
  // Citus refuses a difference of columns, "STABLE functions with column references", but not inside of coalesce.
  await database.query(
    `update records set lease_expires_at = now() - interval '1 second',
            pending_until = now() - interval '1 second' + coalesce(pending_until - lease_expires_at, null)
      where tenant_id = $1 and key = coalesce($2, key)`,
    [tenant.id, key],
  );
}

/** Makes a tenant's records, or one of them, older: moves all their times back by so many seconds. */
export async function ageRecords(
  database: TestDatabase,
  tenant: TestTenant,
  seconds: number,
  key?: string,
): Promise<void> {
  const columns = [
    "first_claimed_at",
    "claimed_at",
    "lease_expires_at",
    "unknown_since",
    "pending_until",
    "settled_at",
    "expires_at",
    "result_expires_at",
    "sweep_at",
  ];
  // Without `coalesce`, Citus refuses the difference, as in restamp-records.ts.
  const moved = columns.map((column) => `${column} = coalesce(${column}, null) - $2 * interval '1 second'`);
  await database.query(
    `update records set ${moved.join(", ")} where tenant_id = $1 and key = coalesce($3, key)`,
    [tenant.id, seconds, key],
  );
}

/**
 * Inserts copies of a tenant's record by SQL.
 *
 * @param keySql the key of the copy number `n`, from 1 on, such as `'order-' || n`.
 */
export async function copyRecord(
  database: Pick<TestDatabase, "query">,
  { id }: Pick<TestTenant, "id">,
  key: string,
  { count, keySql }: { readonly count: number; readonly keySql: string },
): Promise<void> {
  const columns = await database.query<{ name: string }>(
    `select column_name as name from information_schema.columns
      where table_name = 'records' and column_name <> 'key' and is_generated = 'NEVER'`,
  );
  const names = columns.map(({ name }) => name).join(", ");
  await database.query(
    `insert into records (${names}, key)
     select ${names}, ${keySql} from records, generate_series(1, $3::int) n where tenant_id = $1 and key = $2`,
    [id, key, count],
  );
}
