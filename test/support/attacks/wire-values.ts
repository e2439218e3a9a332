import type { DescField } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** A value in each format; undefined if a format cannot express it. */
export interface Encoded {
  readonly binary: Uint8Array | undefined;
  readonly json: string | undefined;
}

/** A field's value, valid or not: this file does not know the field's type. */
export interface WireValue extends Encoded {
  readonly wireType: WireType;
}

/** A field with its value, including tag and name. */
export interface WireField extends Encoded {
  readonly field: DescField;
}

/** Returns a string. Only JSON can escape a lone surrogate. */
export function text(value: string): WireValue {
  const binary = value.isWellFormed() ? lengthDelimited(Buffer.from(value)) : undefined;
  return { wireType: WireType.LengthDelimited, binary, json: JSON.stringify(value) };
}

/** Returns bytes; a string or a message may contain them, too. */
export function bytes(value: Uint8Array): WireValue {
  const json = JSON.stringify(Buffer.from(value).toString("base64"));
  return { wireType: WireType.LengthDelimited, binary: lengthDelimited(value), json };
}

/** Returns a number of 32 or 64 bits, a boolean or an enum's value; `json` is its JSON. */
export function varint(value: bigint, json = String(value)): WireValue {
  const binary = new BinaryWriter().int64(BigInt.asIntN(64, value)).finish();
  return { wireType: WireType.Varint, binary, json };
}

/** Returns a value that only the binary format can express. */
export function onlyBinary(wireType: WireType, binary: Uint8Array): WireValue {
  return { wireType, binary, json: undefined };
}

/** Returns a value that only JSON can express. */
export function onlyJson(json: string): WireValue {
  return { wireType: WireType.Varint, binary: undefined, json };
}

/** Returns a message with these fields. */
export function message(fields: readonly WireField[]): WireValue {
  const { binary, json } = encode(fields);
  return { wireType: WireType.LengthDelimited, binary: binary && lengthDelimited(binary), json };
}

/** Returns a field with one value; in a list, it is the only element. */
export function setField(field: DescField, value: WireValue): WireField {
  return setElements(field, [value], field.fieldKind === "list");
}

/** Returns a field with these elements. */
export function setElements(field: DescField, values: readonly WireValue[], isList = true): WireField {
  const writer = new BinaryWriter();
  for (const { wireType, binary } of values) {
    if (binary !== undefined) writer.tag(field.number, wireType).raw(binary);
  }
  const all = values.map(({ json }) => json).join(",");
  return {
    field,
    binary: values.some(({ binary }) => binary === undefined) ? undefined : writer.finish(),
    json: values.some(({ json }) => json === undefined) ? undefined : isList ? `[${all}]` : all,
  };
}

/** Returns a whole request. */
export function encode(fields: readonly WireField[]): Encoded {
  const binary: Uint8Array[] = [];
  const json: string[] = [];
  for (const set of fields) {
    if (set.binary !== undefined) binary.push(set.binary);
    if (set.json !== undefined) json.push(`${JSON.stringify(set.field.jsonName)}:${set.json}`);
  }
  return {
    binary: binary.length === fields.length ? Buffer.concat(binary) : undefined,
    json: json.length === fields.length ? `{${json.join(",")}}` : undefined,
  };
}

function lengthDelimited(value: Uint8Array): Uint8Array {
  return new BinaryWriter().bytes(value).finish();
}
