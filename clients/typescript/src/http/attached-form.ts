import { base64Url, sha256 } from "../wire/bytes.ts";

/**
 * Returns the content of a multipart form that `@fastify/multipart` has put into the body whole, with
 * `attachFieldsToBody: "keyValues"`: files as their SHA-256. Undefined for any other request, and for a form of which a
 * part may be missing: its `onFile` kept a file elsewhere, or (with `attachFieldsToBody: true`) a file is read later. A
 * value that `onFile` sets for a file counts as a field.
 */
export function attachedForm(request: { readonly body?: unknown }): unknown {
  const { body } = request;
  // Other parsers, which keep files elsewhere, do not add these methods.
  if (!hasMethod(request, "saveRequestFiles") || !hasMethod(request, "parts")) return undefined;
  if (typeof body !== "object" || body === null || body instanceof Uint8Array) return undefined;
  if (!isForm(request)) return undefined;
  const fields = Object.entries(body).map(([name, value]) => [name, [value].flat()] as const);
  if (fields.some(([, values]) => values.some(isIncomplete))) return undefined;
  return fields.map(([name, values]) => [name, values.map(contentOf)]);
}

function isForm(request: object): boolean {
  return hasMethod(request, "isMultipart") && request.isMultipart() === true;
}

function hasMethod<Name extends string>(
  request: object,
  name: Name,
): request is object & Record<Name, () => unknown> {
  return typeof Reflect.get(request, name) === "function";
}

/** A file that is not in the body is undefined, or the object of a part that is read later. */
function isIncomplete(value: unknown): boolean {
  return value === undefined || (typeof value === "object" && value !== null && "fieldname" in value);
}

/** A field never has the content of a file: they are told by their kinds. */
function contentOf(value: unknown): readonly [kind: string, content: unknown] {
  return value instanceof Uint8Array ? ["file", base64Url(sha256(value))] : ["field", value];
}
