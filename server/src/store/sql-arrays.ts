/**
 * Array literals for `unnest`, one column of a batch each.
 *
 * `pg` would do this too, but asks every element for its type and escapes it by regular expression; at tens of thousands
 * of rows a second that is a third of the store's CPU. Syntax: https://www.postgresql.org/docs/current/arrays.html
 */

/** `int[]`, `bigint[]`, `smallint[]`, `boolean[]`: elements whose text needs no quotes. */
export function scalarArray(values: readonly (number | bigint | boolean | undefined)[]): string {
  let literal = "{";
  for (let i = 0; i < values.length; i++) {
    if (i > 0) literal += ",";
    literal += values[i] === undefined ? "NULL" : values[i];
  }
  return `${literal}}`;
}

/** `text[]`. */
export function textArray(values: readonly (string | undefined)[]): string {
  let literal = "{";
  for (let i = 0; i < values.length; i++) {
    if (i > 0) literal += ",";
    const value = values[i];
    literal += value === undefined ? "NULL" : `"${quotable(value)}"`;
  }
  return `${literal}}`;
}

/** `bytea[]`, in hex format. */
export function byteaArray(values: readonly (Uint8Array | undefined)[]): string {
  let literal = "{";
  for (let i = 0; i < values.length; i++) {
    if (i > 0) literal += ",";
    const value = values[i];
    literal += value === undefined ? "NULL" : `"\\\\x${hex(value)}"`;
  }
  return `${literal}}`;
}

const SPECIAL = /[\\"]/g;

function quotable(text: string): string {
  return text.includes('"') || text.includes("\\") ? text.replace(SPECIAL, "\\$&") : text;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}
