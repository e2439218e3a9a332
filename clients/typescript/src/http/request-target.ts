/** A request target such as `/charges?dry=1` in its two parts; the query keeps its question mark. */
export function splitTarget(target: string): { path: string; query: string } {
  const start = target.indexOf("?");
  if (start === -1) return { path: target, query: "" };
  return { path: target.slice(0, start), query: target.slice(start) };
}
