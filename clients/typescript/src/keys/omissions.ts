import { refusedField } from "../errors/violations.ts";

/** The members to omit from an object, by name: the whole member, or some of its own members. */
export type Omissions = ReadonlyMap<string, Omissions | "whole">;

/**
 * Returns the members that JSON Pointers (RFC 6901) name, as a tree.
 *
 * @throws InvalidRequestError for a text that is not a pointer to a member.
 */
export function parseOmissions(pointers: readonly string[]): Omissions {
  const root: OmissionNode = new Map();
  for (const pointer of pointers) {
    const names = namesOf(pointer, "omit");
    const last = names.pop() ?? "";
    const parent = names.reduce<OmissionNode | "whole">(
      (node, name) => (node === "whole" ? node : childOf(node, name)),
      root,
    );
    if (parent !== "whole") parent.set(last, "whole");
  }
  return root;
}

type OmissionNode = Map<string, OmissionNode | "whole">;

function childOf(node: OmissionNode, name: string): OmissionNode | "whole" {
  const child = node.get(name) ?? new Map();
  node.set(name, child);
  return child;
}

/** Returns the names of which a JSON Pointer to a member is made. @throws InvalidRequestError about the field. */
export function namesOf(pointer: string, field: string): string[] {
  if (!pointer.startsWith("/")) {
    throw refusedField(field, `must be JSON Pointers such as "/sentAt", has ${JSON.stringify(pointer)}`);
  }
  const names = pointer.slice(1).split("/");
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}
