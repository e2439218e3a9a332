/**
 * Responses without what differs from one run to another: of a moment or a duration only that it is there, and of a
 * fencing token only which of those seen of its key it is, counted in their order. `keys` says whose each response is.
 */
export function comparable(responses: readonly unknown[], keys: readonly string[]): unknown {
  const tokensByKey = new Map<string, Set<bigint>>();
  responses.forEach((response, index) => {
    const key = keys[index] ?? "";
    const tokens = tokensByKey.get(key) ?? new Set();
    tokensByKey.set(key, tokens);
    visit(response, (token) => tokens.add(token));
  });
  return responses.map((response, index) => {
    const inOrder = [...(tokensByKey.get(keys[index] ?? "") ?? [])].sort((a, b) => (a < b ? -1 : 1));
    return visit(response, (token) => `token ${inOrder.indexOf(token)}`);
  });
}

function visit(value: unknown, onToken: (token: bigint) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => visit(item, onToken));
  if (typeof value !== "object" || value === null) return value;
  // A `Buffer` or not: that is by how many chunks the response came in.
  if (value instanceof Uint8Array) return Uint8Array.from(value);
  const { $typeName, ...fields } = value as Record<string, unknown>;
  if ($typeName === "google.protobuf.Timestamp" || $typeName === "google.protobuf.Duration") return $typeName;
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      name === "fencingToken" && typeof field === "bigint" ? onToken(field) : visit(field, onToken),
    ]),
  );
}
