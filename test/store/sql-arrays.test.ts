import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { byteaArray, scalarArray, textArray } from "../../server/src/store/sql-arrays.ts";

let connection: pg.Client;

beforeAll(async () => {
  connection = new pg.Client({ connectionString: inject("postgresUrl") });
  await connection.connect();
});

afterAll(() => connection?.end());

/** The array as Postgres understood it. */
async function roundTrip(literal: string, type: "text" | "bytea" | "bigint" | "boolean"): Promise<unknown[]> {
  const { rows } = await connection.query({
    text: `select each from unnest($1::${type}[]) with ordinality as a (each, i) order by i`,
    values: [literal],
  });
  return rows.map((row: { each: unknown }) => row.each);
}

/** Every character that Postgres takes, and those that an array literal gives a meaning to above all. */
const text = fc.oneof(
  fc.string({
    unit: fc.constantFrom("\\", '"', "{", "}", ",", "'", " ", "N", "\n", "\t", "\u20ac"),
    maxLength: 12,
  }),
  fc.string({ unit: "binary", maxLength: 20 }).map((any) => any.replaceAll("\0", "").toWellFormed()),
  fc.constantFrom("", "NULL", "null", "{}", '""', "\\x00"),
);

test("texts are the same after a round trip", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(text, { nil: undefined })), async (texts) => {
      expect(await roundTrip(textArray(texts), "text")).toEqual(texts.map((each) => each ?? null));
    }),
    { numRuns: 300 },
  );
});

test("bytes are the same after a round trip", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(fc.uint8Array(), { nil: undefined })), async (values) => {
      const expected = values.map((each) => (each === undefined ? null : Buffer.from(each)));
      expect(await roundTrip(byteaArray(values), "bytea")).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

test("bytes are taken from their part of a larger buffer", async () => {
  const part = new Uint8Array([1, 2, 3, 4, 5]).subarray(1, 3);
  expect(await roundTrip(byteaArray([part]), "bytea")).toEqual([Buffer.from([2, 3])]);
});

test("whole numbers of every size are the same after a round trip", async () => {
  const number = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.maxSafeInteger());
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(number, { nil: undefined })), async (values) => {
      const expected = values.map((each) => (each === undefined ? null : String(each)));
      expect(await roundTrip(scalarArray(values), "bigint")).toEqual(expected);
    }),
    { numRuns: 100 },
  );
});

test("truth is the same after a round trip", async () => {
  expect(await roundTrip(scalarArray([true, undefined, false]), "boolean")).toEqual([true, null, false]);
});
