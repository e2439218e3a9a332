import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  type MessageInitShape,
  ScalarType,
  toBinary,
  type UnknownField,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence, isWrapperDesc } from "@bufbuild/protobuf/wkt";

/** A message, or what one is made of: some of its fields. */
type Init = Readonly<Record<string, unknown>>;

/** Writes a message, or what it has in one of its members. */
type Write = (writer: BinaryWriter, message: Init) => void;

/** A writer's buffer is kept for the next message, unless one that is out of the ordinary made it larger than this. */
const MAX_KEPT_BYTES = 512 * 1024;

let kept = new BinaryWriter();

/**
 * The bytes of the message that `create` would make of this, behind those of the head.
 *
 * As `toBinary(desc, create(desc, init))`, in one walk instead of two, without the message between them, and without
 * growing a buffer (`server/decisions/0005-what-a-claim-costs.md`). What this can't encode is the library's to encode, or
 * to refuse.
 *
 * @throws Error as the library does.
 */
export function encodeMessage<Desc extends DescMessage>(
  head: Uint8Array,
  desc: Desc,
  init: MessageInitShape<Desc>,
): Uint8Array {
  const writer = kept;
  // One that is left in the middle of a message is of no use any more.
  kept = new BinaryWriter();
  try {
    writerOf(desc)(writer.raw(head), init as Init);
  } catch {
    return new BinaryWriter()
      .raw(head)
      .raw(toBinary(desc, create(desc, init)))
      .finish();
  }
  const bytes = writer.finish();
  if (bytes.byteLength <= MAX_KEPT_BYTES) kept = writer;
  return bytes;
}

const writers = new WeakMap<DescMessage, Write>();

function writerOf(desc: DescMessage): Write {
  return writers.get(desc) ?? compile(desc);
}

function compile(desc: DescMessage): Write {
  const members: Write[] = [];
  const write: Write = (writer, message) => {
    for (const writeMember of members) writeMember(writer, message);
    if (message.$unknown !== undefined && message.$typeName === desc.typeName) writeUnknown(writer, message);
  };
  // Before its members: a message may hold others of its type.
  writers.set(desc, write);
  for (const member of desc.members) members.push(memberWriter(desc, member));
  return write;
}

function memberWriter(desc: DescMessage, member: DescField | DescOneof): Write {
  const name = member.localName;
  if (member.kind === "oneof") {
    return member.fields.every(isMessageField) ? oneofWriter(name, member.fields) : byLibrary(desc, name);
  }
  if (isMessageField(member)) return ifSet(name, childWriter(member));
  if (member.fieldKind === "list" && member.listKind === "message" && !hasFormOfItsOwn(member.message))
    return ifSet(name, listWriter(childWriter(member)));
  const write = scalarWriter(member);
  return write === undefined ? byLibrary(desc, name) : ifSet(name, write);
}

function ifSet(name: string, write: WriteValue): Write {
  return (writer, message) => {
    const value = message[name];
    if (value !== undefined && value !== null) write(writer, value);
  };
}

/** A message's encoding is that of its members, one after another: so each kind that is rare here can be the library's. */
function byLibrary(desc: DescMessage, name: string): Write {
  return ifSet(name, (writer, value) => {
    const alone = { [name]: value } as MessageInitShape<DescMessage>;
    writer.raw(toBinary(desc, create(desc, alone)));
  });
}

type MessageField = Extract<DescField, { readonly fieldKind: "message" }>;

function isMessageField(field: DescField): field is MessageField {
  return field.fieldKind === "message" && !field.delimitedEncoding && !hasFormOfItsOwn(field.message);
}

/** In JavaScript these are not messages, but what they hold. */
function hasFormOfItsOwn(desc: DescMessage): boolean {
  return isWrapperDesc(desc) || desc.typeName === "google.protobuf.Struct";
}

function childWriter({ number, message: desc }: Pick<MessageField, "number" | "message">): WriteValue {
  const write = writerOf(desc);
  return (writer, child) => {
    if (typeof child !== "object" || child === null) throw new TypeError(`not a ${desc.typeName}`);
    writer.tag(number, WireType.LengthDelimited).fork();
    write(writer, child as Init);
    writer.join();
  };
}

function listWriter(write: WriteValue): WriteValue {
  return (writer, values) => {
    for (const value of values as readonly unknown[]) write(writer, value);
  };
}

function oneofWriter(name: string, fields: readonly MessageField[]): Write {
  const cases = new Map(fields.map((field) => [field.localName, childWriter(field)]));
  return ifSet(name, (writer, oneof) => {
    const { case: set, value } = oneof as { readonly case?: string; readonly value?: unknown };
    if (set !== undefined) cases.get(set)?.(writer, value);
  });
}

/** What whoever made the message knew of it more than is known here. */
function writeUnknown(writer: BinaryWriter, { $unknown }: Init): void {
  for (const { no, wireType, data } of $unknown as readonly UnknownField[]) {
    writer.tag(no, wireType).raw(data);
  }
}

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
