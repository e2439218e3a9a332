import { refusedField } from "./violations.ts";

/**
 * The value without the members that JSON Pointers (RFC 6901) name. The value itself stays as it is.
 *
 * @throws InvalidRequestError for what is no pointer to a member.
 */
export function omitMembers(value: unknown, pointers: readonly string[]): unknown {
  return pointers.reduce((rest: unknown, pointer) => without(rest, namesOf(pointer)), value);
}

function namesOf(pointer: string): string[] {
  if (!pointer.startsWith("/")) {
    throw refusedField("omit", `must be JSON Pointers such as "/sentAt", has ${JSON.stringify(pointer)}`);
  }
  const names = pointer.slice(1).split("/");
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function without(value: unknown, [name, ...deeper]: readonly string[]): unknown {
  const json = hasToJson(value) ? value.toJSON() : value;
  if (name === undefined || typeof json !== "object" || json === null || Array.isArray(json)) return json;
  if (!Object.hasOwn(json, name)) return json;
  const { [name]: member, ...rest } = json as Record<string, unknown>;
  return deeper.length === 0 ? rest : { ...rest, [name]: without(member, deeper) };
}

function hasToJson(value: unknown): value is { toJSON(): unknown } {
  return (
    typeof value === "object" && value !== null && "toJSON" in value && typeof value.toJSON === "function"
  );
}
