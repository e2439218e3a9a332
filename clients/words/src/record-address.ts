/** Path segments that a browser would resolve: a record with such a key is named by the query. */
const DOT_SEGMENTS = [".", ".."];
const KEY_PARAMETER = "key";

/** Returns the path of the console's screen of a record, below `/console`. A key can hold any characters. */
export function recordHref(namespace: string, key: string): string {
  const folder = `/records/${encodeURIComponent(namespace)}`;
  if (!DOT_SEGMENTS.includes(key)) return `${folder}/${encodeURIComponent(key)}`;
  return `${folder}/-?${new URLSearchParams({ [KEY_PARAMETER]: key })}`;
}

/** Returns the record that an address names, from a path such as "/console/records/charges/a%2Fb" and its query. */
export function recordOf(
  pathname: string,
  search: string,
): { readonly namespace: string; readonly key: string } {
  const [namespace = "", key = ""] = pathname.split("/records/")[1]?.split("/").map(decodeSegment) ?? [];
  return { namespace, key: new URLSearchParams(search).get(KEY_PARAMETER) ?? key };
}

/** A person can type a malformed address: its text is then the name. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
