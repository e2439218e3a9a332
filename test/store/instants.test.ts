import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { bigintArray } from "../../server/src/database/sql-arrays.ts";
import { timestamp } from "../../server/src/domain/violations.ts";
import { addMs } from "../../server/src/records/record.ts";

let connection: pg.Client;

beforeAll(async () => {
  connection = new pg.Client({ connectionString: inject("postgresUrl") });
  await connection.connect();
});

afterAll(() => connection?.end());

interface Sum {
  readonly by_ms: number;
  readonly instant_ms: number;
  readonly later_ms: number;
}

/** Returns times and the sums of times and intervals, as Postgres computes them. */
async function sumsOf(pairs: readonly (readonly [atUs: number, byMs: number])[]): Promise<readonly Sum[]> {
  const { rows } = await connection.query<Sum>({
    text: `
select by_ms::float8, date_part('epoch', instant) * 1000 as instant_ms,
       date_part('epoch', instant + by_ms * interval '1 millisecond') * 1000 as later_ms
  from unnest($1::bigint[], $2::bigint[]) as i (at_us, by_ms),
       lateral (select timestamptz 'epoch' + at_us * interval '1 microsecond' as instant) as instants`,
    values: [bigintArray(pairs.map(([atUs]) => atUs)), bigintArray(pairs.map(([, byMs]) => byMs))],
  });
  return rows;
}

const DAY_MS = 24 * 3600 * 1000;
/** With the longest retention, before 2106: until then doubles hold microseconds. */
const instantUs = fc.integer({ min: Date.UTC(2020) * 1000, max: Date.UTC(2095) * 1000 });
const lease = fc.integer({ min: 0, max: DAY_MS });
const retention = fc.integer({ min: 1, max: 3650 * 24 * 3600 }).map((seconds) => seconds * 1000);

test("sums of times are those of Postgres, to the microsecond", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(instantUs, fc.oneof(lease, retention)), { minLength: 500, maxLength: 1000 }),
      async (pairs) => {
        for (const { by_ms, instant_ms, later_ms } of await sumsOf(pairs)) {
          expect(timestamp(addMs(instant_ms, by_ms))).toEqual(timestamp(later_ms));
        }
      },
    ),
    { numRuns: 20 },
  );
});
