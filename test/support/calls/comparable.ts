/**
 * Returns responses without values that differ between two runs: a time or a duration is replaced by a
 * constant, a fencing token by its position among the tokens of its key, and a request id is dropped. `keys`
 * has the key of each response.
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
  // The number of chunks of the response decides whether this is a `Buffer`.
  if (value instanceof Uint8Array) return Uint8Array.from(value);
  const { $typeName, ...fields } = value as Record<string, unknown>;
  if ($typeName === "google.protobuf.Timestamp" || $typeName === "google.protobuf.Duration") return $typeName;
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => name !== "requestId")
      .map(([name, field]) => [
        name,
        name === "fencingToken" && typeof field === "bigint" ? onToken(field) : visit(field, onToken),
      ]),
  );
}
