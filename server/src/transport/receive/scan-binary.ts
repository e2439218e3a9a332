import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { invalidRequest, type Refusal } from "../../domain/refusal.ts";
import { malformed } from "../errors.ts";

/**
 * Elements of the lists and maps of one message, without those of nested messages. More than any field's own
 * limit, so that a list that is slightly too long is refused by the rule of its field, together with all
 * other violations.
 */
const MAX_ELEMENTS = 1024;
/**
 * Other fields of one message. No message has half as many; a newer client may know more. A repeated field
 * counts each time.
 */
const MAX_FIELDS = 64;
/** Fields of a message and its nested messages: a result with as much metadata as is read has 3,100. */
export const MAX_FIELDS_IN_ALL = 4096;

const scanners = new WeakMap<DescMessage, Scanner>();

/** Returns the scanner of a type; creates it at the first call. */
export function binaryScannerOf(desc: DescMessage): Scanner {
  const known = scanners.get(desc);
  if (known !== undefined) return known;
  const made = new Scanner();
  // Stored before its fields are added: a type may contain itself.
  scanners.set(desc, made);
  for (const field of desc.fields) {
    if (field.fieldKind === "list" && field.packed)
      throw new Error(`${field.toString()}: the elements of a packed list are not counted`);
    const list = field.fieldKind === "list" || field.fieldKind === "map" ? field.name : undefined;
    if (field.fieldKind === "map")
      made.know(field.number, WireType.LengthDelimited, list, entryScanner(field));
    else made.know(field.number, wireTypeOf(field), list, scannerOfMessages(field));
  }
  return made;
}

/** Counts the fields of a type's messages before they are parsed into objects. */
class Scanner {
  /** By field number: the scanner of a field's messages; undefined for a field that is not a message. */
  readonly #inner: (Scanner | undefined)[] = [];
  /** By field number: the name of a list or map; undefined for other fields. */
  readonly #lists: (string | undefined)[] = [];
  /**
   * By field number. protobuf-es parses a field by its type in the schema, with any wire type: a field
   * that would be skipped here as one long string might be a million fields there.
   */
  readonly #wireTypes: (WireType | undefined)[] = [];

  know(number: number, wireType: WireType, list: string | undefined, inner: Scanner | undefined): void {
    this.#wireTypes[number] = wireType;
    this.#lists[number] = list;
    this.#inner[number] = inner;
  }

  /**
   * Returns the number of fields in the bytes from `at` to `end`, with those of nested messages. Takes about
   * a microsecond for a small message.
   *
   * @throws Refusal INVALID_REQUEST for more than `maxFields` in total, more than 4,096 in a nested message,
   *   too many in one message, a field with another wire type than in the schema, a group, and a truncated
   *   message.
   */
  countFields(bytes: Uint8Array, at: number, end: number, maxFields: number): number {
    let fields = 0;
    let elements = 0;
    let inAll = 0;
    let next = at;
    while (next < end) {
      const tag = readVarint(bytes, next);
      next = afterVarint;
      const number = tag >>> 3;
      const wireType = tag & 7;
      const list = this.#lists[number];
      if (list === undefined) {
        if (++fields > MAX_FIELDS) throw malformed(`has more than ${MAX_FIELDS} fields in one message`);
      } else if (++elements > MAX_ELEMENTS) throw tooManyElements(list);
      if (++inAll > maxFields) throw malformed(`has more than ${maxFields} fields in all`);
      const expected = this.#wireTypes[number];
      if (number === 0 || (expected !== undefined && expected !== wireType)) throw unreadable();
      switch (wireType) {
        case WireType.Varint:
          readVarint(bytes, next);
          next = afterVarint;
          break;
        case WireType.Bit64:
          next += 8;
          break;
        case WireType.Bit32:
          next += 4;
          break;
        case WireType.LengthDelimited: {
          const length = readVarint(bytes, next);
          const start = afterVarint;
          next = start + length;
          const inner = this.#inner[number];
          if (inner === undefined || next > end) break;
          const maxWithin = Math.min(MAX_FIELDS_IN_ALL, maxFields - inAll);
          inAll += inner.countFields(bytes, start, next, maxWithin);
          break;
        }
        default:
          throw unreadable();
      }
      if (next > end) throw unreadable();
    }
    return inAll;
  }
}

/** Returns the scanner of a map's entries, which are messages of a key and a value. */
function entryScanner(field: DescField & { fieldKind: "map" }): Scanner {
  const scanner = new Scanner();
  scanner.know(1, wireTypeOfScalar(field.mapKey), undefined, undefined);
  scanner.know(2, wireTypeOf(field), undefined, scannerOfMessages(field));
  return scanner;
}

/** Returns the scanner of a field's messages, or of a map's values. */
function scannerOfMessages({ message }: DescField): Scanner | undefined {
  return message && binaryScannerOf(message);
}

/** Returns the wire type of a field's values, or of a map's. */
function wireTypeOf(field: DescField): WireType {
  if (field.scalar !== undefined) return wireTypeOfScalar(field.scalar);
  return field.enum === undefined ? WireType.LengthDelimited : WireType.Varint;
}

function wireTypeOfScalar(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}

/**
 * The index after the last varint that was read. To return an object for each varint would cost more than all
 * the rest.
 */
let afterVarint = 0;

/** Ten groups of seven bits: https://protobuf.dev/programming-guides/encoding/#varints */
const MAX_VARINT_BYTES = 10;

/** Reads a varint as an unsigned 32-bit number, as tags and lengths are; skips a larger one. */
function readVarint(bytes: Uint8Array, at: number): number {
  const first = bytes[at];
  if (first === undefined) throw unreadable();
  if (first < 0x80) {
    afterVarint = at + 1;
    return first;
  }
  let value = first & 0x7f;
  for (let i = 1; i < MAX_VARINT_BYTES; i++) {
    const byte = bytes[at + i];
    if (byte === undefined) break;
    if (i < 5) value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      afterVarint = at + i + 1;
      return value >>> 0;
    }
  }
  throw unreadable();
}

function tooManyElements(list: string): Refusal {
  return invalidRequest(list, `must have at most ${MAX_ELEMENTS} elements`);
}

function unreadable(): Refusal {
  return malformed("is not a message of the request's type");
}
