import type { Runner } from "../../../core/store/pool.ts";
import { fromRow, type RowOf } from "../../../core/store/rows.ts";

/** A record that may be an example. */
export interface ExampleRecord {
  readonly key: string;
  readonly fingerprint: Uint8Array | undefined;
  /** In milliseconds since the Unix epoch. */
  readonly firstClaimedAtMs: number;
}

/**
 * Returns some of a namespace's records. A forgotten row, or one whose retention has ended, is not a record.
 */
const readExampleRecords = {
  name: "read_example_records",
  text: `
select e.key, e.fingerprint, date_part('epoch', e.first_claimed_at) * 1000 as "firstClaimedAtMs"
  from (select r.key, r.fingerprint, r.first_claimed_at, r.state <> 0 /* forgotten */ and r.expires_at > now() as is_live
          from records r
         where r.tenant_id = $1::int
           and r.namespace = $2::text
         order by r.tenant_id, r.namespace, r.key
         limit $3::int) e
 where e.is_live`,
};

/** Returns the live ones among the first `maxRows` rows of a namespace, by key. */
export async function readExamples(
  runner: Runner,
  { tenantId, namespace }: { readonly tenantId: number; readonly namespace: string },
  maxRows: number,
): Promise<readonly ExampleRecord[]> {
  const rows = await runner.run<RowOf<ExampleRecord>>(readExampleRecords, [tenantId, namespace, maxRows]);
  return rows.map((row) => fromRow<ExampleRecord>(row));
}
