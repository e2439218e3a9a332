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
