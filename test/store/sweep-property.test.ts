import fc from "fast-check";
import { expect, test } from "vitest";
import type { BatchResponseItem } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { sweep } from "../support/database/time.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const RUNS = 30;
const MAX_RECORDS = 60;

const { database, server } = useServer();

/** A possible row. Times are seconds from now, and none is so near that it passes during the test. */
interface Row {
  readonly state: number;
  readonly holds: boolean;
  readonly leaseEndsInS: number;
  readonly endsInS: number;
  readonly resultEndsInS: number;
  readonly sweptInS: number;
}

const instants = fc.oneof(fc.integer({ min: -900, max: -60 }), fc.integer({ min: 60, max: 900 }));

const rows: fc.Arbitrary<Row> = fc
  .record({
    state: fc.integer({ min: 0, max: 3 }),
    holds: fc.boolean(),
    leaseEndsInS: instants,
    endsInS: instants,
    resultEndsInS: instants,
    sweptInS: fc.integer({ min: -900, max: 60 }),
  })
  .map((row) => ({ ...row, resultEndsInS: Math.min(row.resultEndsInS, row.endsInS) }));

async function insertRows(tenant: TestTenant, batch: readonly Row[]): Promise<void> {
  await database.query(
    `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
       accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
       claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner, settled_at, result_expires_at,
       result_kind, result_digest, result_payload, result_content_type)
     select $1, 'charges', 'key-' || n, n, state, 1, holds, false, 1000, 600, 60, 60, at, at,
            now() + lease_s * interval '1 second', now() + end_s * interval '1 second',
            now() + sweep_s * interval '1 second', '', 'worker-' || n,
            case when state >= 2 then at end,
            case when state = 2 then now() + result_s * interval '1 second' end,
            case when state = 2 then 1 end,
            case when state = 2 then sha256(n::text::bytea) end,
            case when state = 2 then convert_to('paid ' || n, 'utf8') end,
            case when state = 2 then 'text/plain' end
       from unnest($2::int[], $3::boolean[], $4::int[], $5::int[], $6::int[], $7::int[])
            with ordinality as i (state, holds, lease_s, end_s, result_s, sweep_s, n),
            (select now() - interval '1 hour' as at) then_`,
    [
      tenant.id,
      batch.map((row) => row.state),
      batch.map((row) => row.holds),
      batch.map((row) => row.leaseEndsInS),
      batch.map((row) => row.endsInS),
      batch.map((row) => row.resultEndsInS),
      batch.map((row) => row.sweptInS),
    ],
  );
}

/** Returns the answers to lookups of all keys, without their times. */
async function lookUpAll(client: IdempotencyClient, count: number): Promise<BatchResponseItem[]> {
  const items = Array.from({ length: count }, (_, index) => ({
    request: { case: "lookup" as const, value: { namespace: "charges", key: `key-${index + 1}` } },
  }));
  const replies = (await client.batch({ items })).items;
  for (const { response } of replies) {
    if (response.case === "lookup") response.value.serverTime = undefined;
  }
  return replies;
}

test("lookups of every key have the same answer before and after a sweep", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(rows, { minLength: 1, maxLength: MAX_RECORDS }), async (batch) => {
      const tenant = await createTenant(database);
      const client = connectClient(server, tenant.apiKey);
      await insertRows(tenant, batch);
      const before = await lookUpAll(client, batch.length);
      await sweep(database);
      expect(await lookUpAll(client, batch.length)).toEqual(before);
    }),
    { numRuns: RUNS },
  );
}, 60_000);
