import { type AnyDesc, type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { type FieldFacts, field as fieldFacts, Unit } from "../gen/onceward/v1/facts_pb.ts";
import { parseDurationMs } from "./duration-text.ts";

/**
 * One field of a policy, of policy bounds or of quotas, as the contract describes it. Columns, messages, update masks, defaults and
 * checks of ranges are derived from lists of these: see POLICY_FIELDS, BOUND_FIELDS and QUOTA_FIELDS.
 */
export interface Field<Values = Readonly<Record<string, unknown>>> {
  /** The name in the domain: that of messages, with the unit of a duration. */
  readonly name: keyof Values & string;
  readonly descriptor: DescField;
  /** The column of `tenants`; the columns of a policy are in `namespaces`, too. */
  readonly column: string;
  readonly kind: FieldKind;
  /** The values that the contract allows, in the field's unit, both ends included; of a text, its length in bytes. */
  readonly range: Range | undefined;
  readonly facts: FieldFacts;
}

/** The least and the greatest value. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/**
 * How a field is sent and stored. `seconds` and `milliseconds` are durations in messages and whole numbers elsewhere; a
 * `bigint` column may hold more than 32 bits; the domain names an `enum` as protoc-gen-es does, such as "HOLD"; an empty `text` is
 * unset.
 */
export type FieldKind = "seconds" | "milliseconds" | "integer" | "bigint" | "boolean" | "enum" | "text";

/** Values of which any may be unset. */
export type Overrides<Values> = { readonly [Name in keyof Values]?: Values[Name] | undefined };

/** The fields of a message that the domain has as they are, with 64-bit numbers as numbers: not durations and enums. */
export type PlainFields<Message> = {
  readonly [Name in keyof Message as Name extends `$${string}`
    ? never
    : [Plain<Message[Name]>] extends [never]
      ? never
      : Name]-?: Plain<Message[Name]>;
};

type Plain<Value> = Value extends boolean | string
  ? Value
  : Value extends bigint
    ? number
    : number extends Value
      ? number
      : never;

/** Returns the fields of a message. @param columnOf returns a field's column, without the unit of a duration, by its name. */
export function messageFields<Values>(
  schema: DescMessage,
  columnOf = (name: string) => name,
): readonly Field<Values>[] {
  return schema.fields.map((descriptor) => {
    const facts = factsOf(descriptor);
    const kind = kindOf(descriptor, facts);
    const [ofName = "", ofColumn = ""] =
      kind === "seconds" ? ["S", "_s"] : kind === "milliseconds" ? ["Ms", "_ms"] : [];
    return {
      name: `${descriptor.localName}${ofName}` as keyof Values & string,
      descriptor,
      column: `${columnOf(descriptor.name)}${ofColumn}`,
      kind,
      range: rangeOf(descriptor, kind, facts),
      facts,
    };
  });
}

/**
 * Returns the facts of a field, with the limits of the field that they name.
 *
 * @param types where that field is; default: the field's own file.
 * @throws Error if there is no such field.
 */
export function factsOf(field: DescField, types: Iterable<AnyDesc> = field.parent.file.messages): FieldFacts {
  const facts = getOption(field, fieldFacts);
  if (facts.sameAs === "") return facts;
  const [message, name] = facts.sameAs.split(".");
  const owner = [...types].find((type) => type.kind === "message" && type.name === message);
  const same = owner?.kind === "message" && owner.fields.find((each) => each.name === name);
  if (!same) throw new Error(`${field} has the limits of ${facts.sameAs}, which does not exist`);
  const { min, max, pattern, rule, keys, values, maxJsonBytes } = getOption(same, fieldFacts);
  return { ...facts, min, max, pattern, rule, keys, values, maxJsonBytes };
}

/** @returns the expression that a text of a field matches as a whole; one that matches any text if it has none. */
export function patternOf({ pattern }: FieldFacts): RegExp {
  return new RegExp(pattern && `^(?:${pattern})$`, "u");
}

/** @throws Error for a type that no field has yet. */
function kindOf(descriptor: DescField, { unit }: FieldFacts): FieldKind {
  if (descriptor.enum) return "enum";
  if (descriptor.message) return unit === Unit.SECONDS ? "seconds" : "milliseconds";
  switch (descriptor.scalar) {
    case ScalarType.INT32:
      return "integer";
    case ScalarType.INT64:
      return "bigint";
    case ScalarType.BOOL:
      return "boolean";
    case ScalarType.STRING:
      return "text";
    default:
      throw new Error(`${descriptor} has a type that is not stored`);
  }
}

/** The greatest values of types: of 64 bits, those that numbers of JSON have exactly. */
const GREATEST: Partial<Readonly<Record<FieldKind, number>>> = {
  integer: 2 ** 31 - 1,
  bigint: Number.MAX_SAFE_INTEGER,
};

/** @throws Error for a text without a limit. */
function rangeOf(descriptor: DescField, kind: FieldKind, { min, max }: FieldFacts): Range | undefined {
  const unit = kind === "seconds" ? 1000 : 1;
  const greatest = Number(max) / unit || GREATEST[kind];
  if (greatest !== undefined) return { min: Number(min) / unit, max: greatest };
  if (kind === "text") throw new Error(`${descriptor} is a text without a limit`);
  return undefined;
}

/** Returns the greatest value of a field; 0 for a field without a range. */
export function greatest<Values>(fields: readonly Field<Values>[], name: keyof Values): number {
  return fields.find((field) => field.name === name)?.range?.max ?? 0;
}

/** Returns the defaults of the fields that have one. The default of a text is "". */
export function defaultsOf<Values>(fields: readonly Field<Values>[]): Partial<Values> {
  const values = fields.map((field) => [field.name, defaultOf(field, fields)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as Partial<Values>;
}

function defaultOf<Values>({ kind, facts }: Field<Values>, fields: readonly Field<Values>[]): unknown {
  const from = fields.find(({ descriptor }) => descriptor.name === facts.defaultFrom);
  if (from !== undefined) return defaultOf(from, fields);
  const text = facts.default;
  if (kind === "text") return text;
  return text === "" ? undefined : parseDefault(kind, text);
}

function parseDefault(kind: Exclude<FieldKind, "text">, text: string): unknown {
  switch (kind) {
    case "seconds":
      return parseDurationMs(text) / 1000;
    case "milliseconds":
      return parseDurationMs(text);
    case "integer":
    case "bigint":
      return Number(text);
    case "boolean":
      return text === "true";
    case "enum":
      return text.toUpperCase().replaceAll("-", "_");
  }
}

/** Returns the values that are set. */
export function definedOf<Values>(
  fields: readonly Field<Values>[],
  values: Overrides<Values>,
): Partial<Values> {
  const given = fields.map(({ name }) => [name, values[name] ?? undefined] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined)) as Partial<Values>;
}
