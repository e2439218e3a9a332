import { refusedField } from "../errors/violations.ts";
import { namesOf } from "../keys/omissions.ts";

/** The label of the derived key that a tool gets as an argument. Another one would make providers repeat effects. */
export const KEY_ARGUMENT_LABEL = "tool";
/** The characters of a derived key, as `deriveKey` makes it. */
export const DERIVED_KEY_LENGTH = 43;

/**
 * Returns a tool's arguments with a value at a JSON Pointer, in objects that are created if they are missing. The given arguments
 * are not changed.
 *
 * @throws InvalidRequestError if one of these objects is another value.
 */
export function withArgument(input: unknown, pointer: string, value: unknown): object {
  const write = (at: unknown, [name = "", ...rest]: readonly string[]): object => {
    if (!isPlain(at ?? {}))
      throw refusedField(
        "input",
        `must have objects on the way to ${pointer}, and has another value before ${name}`,
      );
    const member = at && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined;
    return { ...Object(at), [name]: rest.length === 0 ? value : write(member, rest) };
  };
  return write(input, namesOf(pointer, "keyArgument"));
}

function isPlain(value: unknown): value is object {
  const prototype = typeof value === "object" && value !== null ? Object.getPrototypeOf(value) : undefined;
  return prototype === Object.prototype || prototype === null;
}

/**
 * Returns the JSON Schema of a tool's arguments without the one at a JSON Pointer; undefined if `properties` do not define it there:
 * references and combined schemas are not followed.
 */
export function withoutArgument(schema: unknown, pointer: string): object | undefined {
  const hide = (at: unknown, [name = "", ...rest]: readonly string[]): object | undefined => {
    const { properties, required }: { properties?: object; required?: unknown } = Object(at);
    if (!Object.hasOwn(Object(properties), name)) return undefined;
    const { [name]: own, ...others } = properties as Readonly<Record<string, unknown>>;
    if (rest.length > 0) {
      const inner = hide(own, rest);
      return inner && { ...Object(at), properties: { ...properties, [name]: inner } };
    }
    const stillRequired = Array.isArray(required) && { required: required.filter((each) => each !== name) };
    return { ...Object(at), properties: others, ...stillRequired };
  };
  return hide(schema, namesOf(pointer, "keyArgument"));
}

/** Members of a schema that may define more arguments than its `properties`. */
const COMBINING = ["$ref", "allOf", "anyOf", "oneOf"];

/**
 * Returns whether a tool may have the argument at a JSON Pointer, by the JSON Schema of its arguments. References and combined schemas are
 * not followed: these may have any, as may an object of any members within the arguments.
 */
export function mayHaveArgument(schema: unknown, pointer: string): boolean {
  const mayHave = (at: unknown, [name = "", ...rest]: readonly string[], isOpen: boolean): boolean => {
    const { properties, ...more } = Object(at);
    if (properties === undefined || COMBINING.some((member) => member in more)) return true;
    if (!Object.hasOwn(properties, name)) return isOpen && more.additionalProperties === true;
    return rest.length === 0 || mayHave(properties[name], rest, true);
  };
  return mayHave(schema, namesOf(pointer, "keyArgument"), false);
}

/** As long as a derived key. A framework checks what the model sent before the key is known. */
const PLACEHOLDER = "0".repeat(DERIVED_KEY_LENGTH);

/**
 * Returns a framework's schema of a tool's arguments without the one at a JSON Pointer: JSON Schema, alone or in `jsonSchema()` of
 * the AI SDK, and, for an argument at the top, an object of Zod without refinements. Any other schema is returned unchanged.
 *
 * @throws InvalidRequestError about the field if the schema surely does not have the argument.
 */
export function hideArgument(schema: unknown, pointer: string, field: string): unknown {
  const { jsonSchema, validate, shape = {}, omit } = Object(schema);
  const [name = "", ...rest] = namesOf(pointer, field);
  const refused = refusedField(field, `must be an argument in the tool's schema, is ${pointer}`);
  const hide = (json: unknown) => {
    if (!mayHaveArgument(json, pointer)) throw refused;
    return withoutArgument(json, pointer) ?? json;
  };
  if (typeof jsonSchema === "object") {
    const isLater = typeof jsonSchema.then === "function";
    const later = isLater ? Promise.resolve(jsonSchema).then(hide) : undefined;
    // The framework gets the refusal, if it asks.
    later?.catch(() => {});
    const check = (value: unknown) => validate(withArgument(value, pointer, PLACEHOLDER));
    return { ...Object(schema), jsonSchema: later ?? hide(jsonSchema), ...(validate && { validate: check }) };
  }
  if (typeof omit !== "function") return hide(schema);
  try {
    omit.call(schema, {});
  } catch {
    // Zod refuses to change an object with refinements.
    return schema;
  }
  if (!Object.hasOwn(shape, name)) throw refused;
  return rest.length === 0 ? omit.call(schema, { [name]: true }) : schema;
}
