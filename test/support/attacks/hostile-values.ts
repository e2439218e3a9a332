import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { DurationSchema, FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import {
  bytes,
  message,
  onlyBinary,
  onlyJson,
  setElements,
  setField,
  text,
  varint,
  type WireField,
  type WireValue,
} from "./wire-values.ts";

const MAX_INT64 = 2n ** 63n - 1n;
const MIN_INT64 = -(2n ** 63n);

const TEXTS = [
  "",
  "x".repeat(5000),
  "é".repeat(128),
  "a\0b",
  "\u001b[2J",
  "line\n",
  "../%2f%00",
  "'; drop table records; --",
  "\ufeff\u{1f600}",
  "a\udfffb",
  "__proto__",
  // Forged page tokens: too short, of the right shape, and of a wrong shape.
  "!!!=",
  Buffer.from('0123456789abcdef["0","charges","k"]').toString("base64url"),
].map(text);

/** Bytes that are not UTF-8: a stray byte, a surrogate, and an overlong NUL. */
const NOT_UTF8 = [[0xff], [0xed, 0xa0, 0x80], [0xc0, 0x80]].map((value) => ({
  ...bytes(Uint8Array.from(value)),
  json: undefined,
}));

const BYTES = [0, 1, 31, 33, 20_000, 300_000].map((length) => bytes(new Uint8Array(length).fill(0xa5)));

const INTEGERS = [
  ...[0n, 1n, -1n, 2n ** 31n - 1n, -(2n ** 31n), 2n ** 53n, MAX_INT64, MIN_INT64].map((n) => varint(n)),
  ...[2n ** 31n, 2n ** 63n, MIN_INT64 - 1n].map((n) => onlyJson(String(n))),
  ...["1.5", "1e400", '"0x1"'].map(onlyJson),
];

const ENUMS = [
  ...[0n, -1n, 99n, 2n ** 31n - 1n, -(2n ** 31n)].map((n) => varint(n)),
  onlyJson('"SOMETHING_ELSE"'),
  onlyJson("1.5"),
];

const BOOLEANS = [varint(1n, "true"), varint(MAX_INT64, '"yes"'), onlyJson("1")];

/**
 * Values of Duration and Timestamp: both are seconds and nanos. None is a time that a call might wait for.
 */
const SECONDS_AND_NANOS: readonly (readonly [seconds: bigint, nanos: bigint])[] = [
  [0n, 0n],
  [-1n, 0n],
  [0n, 1n],
  [2n, -1n],
  [-2n, 1n],
  [1n, 1_000_000_000n],
  [3600n, 0n],
  [315_576_000_001n, 0n],
  [-62_135_596_801n, 0n],
  [253_402_300_799n, 999_999_999n],
  [-62_135_596_800n, 0n],
  [MAX_INT64, 999_999_999n],
  [MIN_INT64, -999_999_999n],
];

const DURATION_JSON = ["-1s", "0s", "0.0000000001s", "9223372036854775808s", "1h"];
const TIMESTAMP_JSON = ["soon", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z"];
const MASK_JSON = ["nope", "a_b", "*", ",", "policy..keyRetention", "__proto__", "constructor"];
const MASK_PATHS = [
  "nope",
  "*",
  "",
  "policy..key_retention",
  "__proto__",
  "constructor",
  "policy.",
  "a".repeat(5000),
];

/** Returns values of a well-known message, which is a string in JSON; undefined for any other message. */
function wellKnownValues(desc: DescMessage): readonly WireValue[] | undefined {
  switch (desc.typeName) {
    case DurationSchema.typeName:
      return [...SECONDS_AND_NANOS.map((time) => timeValue(desc, time)), ...quoted(DURATION_JSON)];
    case TimestampSchema.typeName:
      return [...SECONDS_AND_NANOS.map((time) => timeValue(desc, time)), ...quoted(TIMESTAMP_JSON)];
    case FieldMaskSchema.typeName:
      return [
        ...[...MASK_PATHS.map((path) => [path]), new Array(1000).fill("nope")].map(maskValue),
        ...quoted(MASK_JSON),
      ];
    default:
      return undefined;
  }
}

function quoted(values: readonly string[]): readonly WireValue[] {
  return values.map((value) => onlyJson(JSON.stringify(value)));
}

function timeValue(desc: DescMessage, [seconds, nanos]: readonly [bigint, bigint]): WireValue {
  const [secondsField, nanosField] = desc.fields;
  if (secondsField === undefined || nanosField === undefined) throw new Error(`${desc.typeName} has no time`);
  return {
    ...message([setField(secondsField, varint(seconds)), setField(nanosField, varint(nanos))]),
    json: undefined,
  };
}

function maskValue(paths: readonly string[]): WireValue {
  const [field] = FieldMaskSchema.fields;
  return { ...message([setElements(field as DescField, paths.map(text))]), json: undefined };
}

/** Returns values of a kind, for a singular field or an element of a list. */
function valuesOf(field: DescField): readonly WireValue[] {
  if (field.message !== undefined) return wellKnownValues(field.message) ?? [message([])];
  if (field.enum !== undefined) return ENUMS;
  switch (field.scalar) {
    case ScalarType.STRING:
      return [...TEXTS, ...NOT_UTF8];
    case ScalarType.BYTES:
      return [...BYTES, onlyJson('"not base64!"')];
    case ScalarType.BOOL:
      return BOOLEANS;
    default:
      return INTEGERS;
  }
}

/** Values that are wrong for any field. */
const OF_NO_KIND = [
  onlyBinary(WireType.Varint, new Uint8Array(11).fill(0xff)),
  onlyBinary(WireType.LengthDelimited, Uint8Array.from([0xff, 0xff, 0xff, 0x7f])),
  ...["null", "[null]", '{"__proto__":{"a":1}}'].map(onlyJson),
];

/**
 * Returns every hostile way to set a field. A value may by chance be valid for the field, and is then
 * answered with OK.
 */
export function hostileFields(field: DescField): readonly WireField[] {
  const ofNoKind = OF_NO_KIND.map((value) => setElements(field, [value], false));
  if (field.fieldKind === "map") return [...ofNoKind, ...hostileMaps(field)];
  const single = valuesOf(field).map((value) => setField(field, value));
  if (field.fieldKind !== "list") return [...ofNoKind, ...single];
  const [first = message([])] = valuesOf(field);
  const lists = [0, 101, 1001].map((count) => setElements(field, new Array(count).fill(first)));
  return [...ofNoKind, ...single, ...lists];
}

/** Returns maps of strings to strings, the only kind of map in requests. */
function hostileMaps(field: DescField): readonly WireField[] {
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`name-${i}`, "v"]));
  const maps: readonly Readonly<Record<string, string>>[] = [
    many,
    ...["", "a\0", "a\nb", "n".repeat(129), "\ud800", "__proto__", "constructor"].map((name) => ({
      [name]: "v",
    })),
    ...["\0", "v".repeat(4097), "\udfff"].map((value) => ({ name: value })),
  ];
  return maps.map((map) => mapField(field, map));
}

function mapField(field: DescField, map: Readonly<Record<string, string>>): WireField {
  const entries = Object.entries(map).map(([name, value]) => {
    const parts = [text(name), text(value)];
    return parts.every(({ binary }) => binary !== undefined)
      ? bytes(
          Buffer.concat(
            parts.map(({ binary = new Uint8Array() }, i) =>
              Buffer.concat([Buffer.from([i * 8 + 10]), binary]),
            ),
          ),
        )
      : onlyJson("");
  });
  return { ...setElements(field, entries), json: JSON.stringify(map) };
}
