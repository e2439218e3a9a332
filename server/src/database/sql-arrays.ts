/*
 * Arrays for `unnest`, one per column of a batch, in the binary format in which `pg` sends buffers. Postgres
 * reads the elements as they are, while it would parse a literal. `pg` itself would write literals: it asks
 * every element for its type and escapes it by regular expression, which at tens of thousands of rows a
 * second takes a third of the store's CPU.
 *
 * Layout, all big-endian: number of dimensions, whether any element is null, the elements' type, length,
 * lower bound; then each element's size, or -1 for null, and its bytes (`array_recv` in Postgres'
 * arrayfuncs.c).
 */

/** The values of a column, in the order of the batch's rows. */
type Column<Value> = readonly (Value | undefined)[];

/** Returns `boolean[]`. */
export function booleanArray(values: Column<boolean>): Buffer {
  return fixedArray(TYPE.boolean, 1, values, (array, value, at) => {
    array[at] = value ? 1 : 0;
  });
}

/** Returns `smallint[]`. */
export function smallintArray(values: Column<number>): Buffer {
  return fixedArray(TYPE.smallint, 2, values, (array, value, at) => array.writeInt16BE(value, at));
}

/** Returns `int[]`. @throws RangeError for a number that is not an int. */
export function intArray(values: Column<number>): Buffer {
  return fixedArray(TYPE.int, 4, values, (array, value, at) => {
    if (value !== (value | 0)) throw new RangeError(`${value} is not an int`);
    writeInt(array, value, at);
  });
}

/** Returns `bigint[]`. */
export function bigintArray(values: Column<number | bigint>): Buffer {
  return fixedArray(TYPE.bigint, 8, values, (array, value, at) => array.writeBigInt64BE(BigInt(value), at));
}

/** Returns `double precision[]`. */
export function float8Array(values: Column<number>): Buffer {
  return fixedArray(TYPE.float8, 8, values, (array, value, at) => array.writeDoubleBE(value, at));
}

/** Returns `text[]`. */
export function textArray(values: Column<string>): Buffer {
  return asciiArray(values) ?? utf8Array(values);
}

/** Returns `bytea[]`. */
export function byteaArray(values: Column<Uint8Array>): Buffer {
  return sizedArray(
    TYPE.bytea,
    values,
    (value) => value.byteLength,
    (array, value, at) => array.set(value, at),
  );
}

/** Object ids of types, which `pg_type.dat` fixes. */
const TYPE = { boolean: 16, bytea: 17, bigint: 20, smallint: 21, int: 23, text: 25, float8: 701 } as const;
const HEADER_BYTES = 20;
const NULL = -1;

function startArray(type: number, values: Column<unknown>, bytes: number): Buffer {
  const array = Buffer.allocUnsafe(HEADER_BYTES + 4 * values.length + bytes);
  writeInt(array, values.length === 0 ? 0 : 1, 0);
  // Postgres finds nulls by their sizes.
  writeInt(array, 0, 4);
  writeInt(array, type, 8);
  writeInt(array, values.length, 12);
  writeInt(array, 1, 16);
  return values.length === 0 ? array.subarray(0, 12) : array;
}

/** Writes a value's bytes into an array. */
type Write<Value> = (array: Buffer, value: Value, at: number) => void;

/**
 * Returns an array of elements of `bytes` bytes each. Needs no size of each element, as `sizedArray` does.
 */
function fixedArray<Value>(type: number, bytes: number, values: Column<Value>, write: Write<Value>): Buffer {
  const array = startArray(type, values, bytes * values.length);
  let at = HEADER_BYTES;
  for (const value of values) {
    writeInt(array, value === undefined ? NULL : bytes, at);
    at += 4;
    if (value === undefined) continue;
    write(array, value, at);
    at += bytes;
  }
  return array.subarray(0, at);
}

/** Returns an array of elements of different sizes. */
function sizedArray<Value>(
  type: number,
  values: Column<Value>,
  sizeOf: (value: Value) => number,
  write: Write<Value>,
): Buffer {
  let bytes = 0;
  for (const value of values) bytes += value === undefined ? 0 : sizeOf(value);
  const array = startArray(type, values, bytes);
  let at = HEADER_BYTES;
  for (const value of values) {
    const size = value === undefined ? NULL : sizeOf(value);
    writeInt(array, size, at);
    at += 4;
    if (value === undefined) continue;
    write(array, value, at);
    at += size;
  }
  return array;
}

/**
 * Returns an array of short ASCII texts, or undefined if a text is long or not ASCII. Nearly all columns are
 * short ASCII texts. Sizes and texts are concatenated and written at once, because V8 has many
 * representations of texts, and a loop over characters is slow.
 */
function asciiArray(values: Column<string>): Buffer | undefined {
  let elements = "";
  for (const value of values) {
    const size = value === undefined ? undefined : SIZES[value.length];
    if (size === undefined) return undefined;
    elements += size + value;
  }
  if (Buffer.byteLength(elements) > elements.length) return undefined;
  const array = startArray(TYPE.text, values, elements.length - 4 * values.length);
  if (elements !== "") array.write(elements, HEADER_BYTES, "latin1");
  return array;
}

/** Each size as the four bytes before an element, one character per byte. */
const SIZES = Array.from({ length: 0x80 }, (_, size) => String.fromCharCode(0, 0, 0, size));

function utf8Array(values: Column<string>): Buffer {
  return sizedArray(
    TYPE.text,
    values,
    (value) => Buffer.byteLength(value),
    (array, value, at) => array.write(value, at),
  );
}

function writeInt(array: Buffer, value: number, at: number): void {
  array[at] = value >>> 24;
  array[at + 1] = value >>> 16;
  array[at + 2] = value >>> 8;
  array[at + 3] = value;
}
