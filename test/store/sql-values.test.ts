import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import {
  bigintArray,
  booleanArray,
  byteaArray,
  intArray,
  smallintArray,
  textArray,
} from "../../server/src/database/sql-arrays.ts";
import { timestamp } from "../../server/src/domain/violations.ts";
import { addMs } from "../../server/src/records/record.ts";

let connection: pg.Client;

beforeAll(async () => {
  connection = new pg.Client({ connectionString: inject("postgresUrl") });
  await connection.connect();
});

afterAll(() => connection?.end());

/** Returns the array as Postgres read it. */
async function roundTrip(array: Buffer, type: string): Promise<unknown[]> {
  const { rows } = await connection.query({
    text: `select each from unnest($1::${type}[]) with ordinality as a (each, i) order by i`,
    values: [array],
  });
  return rows.map((row: { each: unknown }) => row.each);
}

/** Every character that Postgres accepts, most often those that have a meaning in an array literal. */
const text = fc.oneof(
  fc.string({
    unit: fc.constantFrom("\\", '"', "{", "}", ",", "'", " ", "N", "\n", "\t", "\u20ac"),
    maxLength: 12,
  }),
  fc.string({ unit: "binary", maxLength: 20 }).map((any) => any.replaceAll("\0", "").toWellFormed()),
  fc.constantFrom("", "NULL", "null", "{}", '""', "\\x00"),
);

/** Texts like keys and names, up to and beyond 127 characters, whose size needs one byte. */
const asciiText = fc
  .tuple(fc.string({ maxLength: 12 }), fc.constantFrom(0, 115, 116, 127, 128, 300))
  .map(([start, length]) => start.padEnd(length, "k"));

const texts = fc.oneof(fc.array(fc.option(text, { nil: undefined })), fc.array(asciiText));

test("texts are unchanged after a round trip", async () => {
  await fc.assert(
    fc.asyncProperty(texts, async (texts) => {
      expect(await roundTrip(textArray(texts), "text")).toEqual(texts.map((each) => each ?? null));
    }),
    { numRuns: 300 },
  );
});

test("bytes are unchanged after a round trip", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(fc.uint8Array(), { nil: undefined })), async (values) => {
      const expected = values.map((each) => (each === undefined ? null : Buffer.from(each)));
      expect(await roundTrip(byteaArray(values), "bytea")).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

test("only the bytes of a view into a larger buffer are sent", async () => {
  const part = new Uint8Array([1, 2, 3, 4, 5]).subarray(1, 3);
  expect(await roundTrip(byteaArray([part]), "bytea")).toEqual([Buffer.from([2, 3])]);
});

test.each([
  { type: "smallint", bits: 16n, arrayOf: (values: Numbers) => smallintArray(values.map(toNumber)) },
  { type: "int", bits: 32n, arrayOf: (values: Numbers) => intArray(values.map(toNumber)) },
  { type: "bigint", bits: 64n, arrayOf: bigintArray },
])("every $type is the same after a round trip", async ({ type, bits, arrayOf }) => {
  const limit = 2n ** (bits - 1n);
  const number = fc.oneof(
    fc.bigInt({ min: -limit, max: limit - 1n }),
    fc.constantFrom(-limit, -1n, 0n, limit - 1n),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(number, { nil: undefined })), async (values) => {
      const expected = values.map((each) => (each === undefined ? null : String(each)));
      expect(
        (await roundTrip(arrayOf(values), type)).map((each) => (each === null ? null : String(each))),
      ).toEqual(expected);
    }),
    { numRuns: 100 },
  );
});

type Numbers = readonly (bigint | undefined)[];

function toNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

test("a number that is not an int is refused", () => {
  expect(() => intArray([2 ** 31])).toThrow(RangeError);
  expect(() => intArray([0.5])).toThrow(RangeError);
});

test("booleans are unchanged after a round trip", async () => {
  expect(await roundTrip(booleanArray([true, undefined, false]), "boolean")).toEqual([true, null, false]);
});

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
