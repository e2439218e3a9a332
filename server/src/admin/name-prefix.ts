import type { Violations } from "../domain/violations.ts";
import { HIGHEST } from "./records/find-records.ts";

/**
 * Returns the texts between which all names that begin with a prefix are, in byte order: above `after`, below `before`.
 *
 * @param prefix begins a name, or is empty.
 */
export function rangeOfPrefix(prefix: string): { readonly after: string; readonly before: string } {
  const before = `${prefix}${HIGHEST}`;
  if (prefix === "") return { after: "", before };
  const last = prefix.charCodeAt(prefix.length - 1);
  return { after: `${prefix.slice(0, -1)}${String.fromCharCode(last - 1)}${HIGHEST}`, before };
}

/** Parses the text with which names begin. Adds a violation if no name begins with it. */
export function parsePrefix({ namePrefix }: { readonly namePrefix: string }, violations: Violations): string {
  if (namePrefix !== "") violations.name("name_prefix", namePrefix);
  return namePrefix;
}
