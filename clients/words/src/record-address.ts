/** Path segments that a browser would resolve: a record with such a key is named by the query. */
const DOT_SEGMENTS = [".", ".."];
const KEY_PARAMETER = "key";

/**
 * Returns the path of the console's screen of a record, below `/console`. A key can hold any characters.
 *
 * @param list the list in which the record is opened; `query` is the list's own.
 */
export function recordHref(
  namespace: string,
  key: string,
  list: "records" | "ambiguous" = "records",
  query = "",
): string {
  const parameters = new URLSearchParams(query);
  parameters.delete(KEY_PARAMETER);
  if (DOT_SEGMENTS.includes(key)) parameters.set(KEY_PARAMETER, key);
  const segments = [namespace, DOT_SEGMENTS.includes(key) ? "-" : key].map(encodeURIComponent);
  return `/${list}/${segments.join("/")}${`${parameters}` === "" ? "" : `?${parameters}`}`;
}

/** Returns the record that an address names, from a path such as "/console/records/charges/a%2Fb" and its query. */
export function recordOf(
  pathname: string,
  search: string,
): { readonly namespace: string; readonly key: string } {
  const [namespace = "", key = ""] =
    pathname
      .split(/\/(?:records|ambiguous)\//)[1]
      ?.split("/")
      .map(decodeSegment) ?? [];
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
