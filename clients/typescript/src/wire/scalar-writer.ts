import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { type BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** Writes a value with its tag, or nothing if it is what a field has that isn't set. Throws for what it can't write. */
export type WriteValue = (writer: BinaryWriter, value: unknown) => void;

/** How a field is written that holds one value of the kinds that requests have; undefined for all others. */
export function scalarWriter(field: DescField): WriteValue | undefined {
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return undefined;
  if (field.fieldKind === "enum") return numberWriter(field.number);
  if (field.fieldKind !== "scalar") return undefined;
  switch (field.scalar) {
    case ScalarType.STRING:
      return stringWriter(field.number);
    case ScalarType.BYTES:
      return bytesWriter(field.number);
    case ScalarType.BOOL:
      return boolWriter(field.number);
    case ScalarType.INT32:
      return numberWriter(field.number);
    case ScalarType.INT64:
      return bigintWriter(field.number);
    default:
      return undefined;
  }
}

function stringWriter(number: number): WriteValue {
  return (writer, value) => {
    if (value !== "") writer.tag(number, WireType.LengthDelimited).string(value as string);
  };
}

function bytesWriter(number: number): WriteValue {
  return (writer, bytes) => {
    if (!(bytes instanceof Uint8Array)) throw new TypeError("not bytes");
    if (bytes.byteLength > 0) writer.tag(number, WireType.LengthDelimited).bytes(bytes);
  };
}

function boolWriter(number: number): WriteValue {
  return (writer, value) => {
    if (value !== false) writer.tag(number, WireType.Varint).bool(value as boolean);
  };
}

function numberWriter(number: number): WriteValue {
  return (writer, value) => {
    if (value !== 0) writer.tag(number, WireType.Varint).int32(value as number);
  };
}

function bigintWriter(number: number): WriteValue {
  return (writer, value) => {
    if (value !== 0n) writer.tag(number, WireType.Varint).int64(value as bigint);
  };
}
