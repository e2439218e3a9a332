import { type DescField, type DescMessage, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { invalidRequest, type Refusal } from "../../domain/refusal.ts";
import { malformed } from "../errors.ts";

/**
 * Returns the refusal of JSON that is not a message of a type: it names the first field that is unknown or has another form, and the
 * form; or says where the JSON is broken. The parser has refused it as `cause`.
 */
export function explainJson(desc: DescMessage, text: string, cause: unknown): Refusal {
  try {
    const found = findProblem(desc, JSON.parse(text), "");
    if (found !== undefined) return invalidRequest(found.field, found.description);
  } catch (error) {
    if (error instanceof SyntaxError) return malformed(`is not JSON: ${error.message}`, cause);
  }
  return malformed("is not a message of the request's type", cause);
}

interface Problem {
  readonly field: string;
  readonly description: string;
}

function findProblem(desc: DescMessage, json: JsonValue, path: string): Problem | undefined {
  if (!isObject(json))
    return { field: path.slice(0, -1) || "message", description: `must be an object, is ${kindOf(json)}` };
  for (const [key, value] of Object.entries(json)) {
    const field = desc.fields.find(({ name, jsonName }) => key === name || key === jsonName);
    if (field === undefined)
      return {
        field: path + (NAME.test(key) ? key : quoted(key)),
        description: `is unknown${suggest(desc, key)}`,
      };
    const found = findInField(desc, field, value, path + field.name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function findInField(
  desc: DescMessage,
  field: DescField,
  value: JsonValue,
  path: string,
): Problem | undefined {
  if (canRead(desc, field, value)) return undefined;
  if (field.message !== undefined && !field.message.typeName.startsWith("google.protobuf.")) {
    if (field.fieldKind === "message") return findProblem(field.message, value, `${path}.`);
    if (field.fieldKind === "list" && Array.isArray(value)) {
      for (const [at, item] of value.entries()) {
        const found = canRead(desc, field, [item]) || findProblem(field.message, item, `${path}[${at}].`);
        if (typeof found === "object") return found;
      }
    }
  }
  return { field: path, description: `must be ${formOf(field)}, is ${kindOf(value)}` };
}

function canRead(desc: DescMessage, field: DescField, value: JsonValue): boolean {
  try {
    fromJson(desc, { [field.name]: value });
    return true;
  } catch {
    return false;
  }
}

/** The forms of https://protobuf.dev/programming-guides/json for types whose JSON has another type. */
const FORMS: Readonly<Record<string, string>> = {
  "google.protobuf.Duration": 'seconds such as "7200s"',
  "google.protobuf.Timestamp": 'a time such as "2026-01-31T12:00:00Z"',
  "google.protobuf.FieldMask": 'names such as "lease,onExpiry"',
};

function formOf(field: DescField): string {
  if (field.fieldKind === "list") return "a list of the field's type";
  if (field.fieldKind === "map") return "an object of the field's type";
  if (field.enum !== undefined) {
    const values = field.enum.values.filter(({ number }) => number !== 0);
    return `one of ${values.map(({ name }) => name).join(", ")}`;
  }
  if (field.message !== undefined) return FORMS[field.message.typeName] ?? "an object";
  return SCALARS[field.scalar ?? 0] ?? "a number in the range of its type";
}

/** By the numbers of google.protobuf.FieldDescriptorProto.Type; all others are numbers. */
const SCALARS: Readonly<Record<number, string>> = {
  3: "an integer of 64 bits, as a number or a string",
  5: "an integer of 32 bits",
  8: "true or false",
  9: "a string without lone surrogates",
  12: "base64",
};

/** The longest value, or name, that is repeated. */
const MAX_QUOTED = 32;

/** Also escapes what a header cannot carry: lone surrogates, and control characters. */
function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text);
}

function kindOf(value: JsonValue): string {
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return "a list";
  return value !== null && typeof value === "object" ? "an object" : String(value);
}

function isObject(json: JsonValue): json is { [key: string]: JsonValue } {
  return json !== null && typeof json === "object" && !Array.isArray(json);
}

const NAME = /^\w{1,32}$/;

/** Edits between a misspelt name and a field's. */
const MAX_EDITS = 2;

function suggest({ fields }: DescMessage, key: string): string {
  const typed = key.slice(0, MAX_QUOTED).replaceAll("_", "").toLowerCase();
  const near = fields.map(({ jsonName }) => ({ jsonName, edits: editsOf(typed, jsonName.toLowerCase()) }));
  const best = near.sort((a, b) => a.edits - b.edits)[0];
  return best !== undefined && best.edits <= MAX_EDITS ? `; did you mean ${best.jsonName}?` : "";
}

/** Returns the number of characters to insert, delete or replace (Levenshtein). */
function editsOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [at, character] of [...one].entries()) {
    const next = [at + 1];
    for (let to = 1; to <= other.length; to++) {
      const replaced = (row[to - 1] ?? 0) + (other[to - 1] === character ? 0 : 1);
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
