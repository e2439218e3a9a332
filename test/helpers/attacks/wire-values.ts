import type { DescField } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** Something as the formats carry it; undefined where a format has no way to say it. */
export interface Encoded {
  readonly binary: Uint8Array | undefined;
  readonly json: string | undefined;
}

/** A field's value, right or wrong: nothing here knows what the field takes. */
export interface WireValue extends Encoded {
  readonly wireType: WireType;
}

/** A field that is set, tag and name included. */
export interface WireField extends Encoded {
  readonly field: DescField;
}

/** A string. JSON alone can escape a lone surrogate. */
export function text(value: string): WireValue {
  const binary = value.isWellFormed() ? lengthDelimited(Buffer.from(value)) : undefined;
  return { wireType: WireType.LengthDelimited, binary, json: JSON.stringify(value) };
}

/** Bytes, as a string or a message may hold them too. */
export function bytes(value: Uint8Array): WireValue {
  const json = JSON.stringify(Buffer.from(value).toString("base64"));
  return { wireType: WireType.LengthDelimited, binary: lengthDelimited(value), json };
}

/** A number of either size, a boolean or an enum's value; `json` as JSON writes it. */
export function varint(value: bigint, json = String(value)): WireValue {
  const binary = new BinaryWriter().int64(BigInt.asIntN(64, value)).finish();
  return { wireType: WireType.Varint, binary, json };
}

/** What only binary can say. */
export function onlyBinary(wireType: WireType, binary: Uint8Array): WireValue {
  return { wireType, binary, json: undefined };
}

/** What only JSON can say. */
export function onlyJson(json: string): WireValue {
  return { wireType: WireType.Varint, binary: undefined, json };
}

/** A message of its fields. */
export function message(fields: readonly WireField[]): WireValue {
  const { binary, json } = encode(fields);
  return { wireType: WireType.LengthDelimited, binary: binary && lengthDelimited(binary), json };
}

/** A field with one value; of a list, it is the only element. */
export function setField(field: DescField, value: WireValue): WireField {
  return setElements(field, [value], field.fieldKind === "list");
}

/** A list with these elements. */
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

/** A whole request. */
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
