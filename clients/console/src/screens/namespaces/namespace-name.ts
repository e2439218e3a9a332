const NAMESPACE_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** Returns whether a text can be the name of a namespace (record.proto). */
export function isNamespaceName(text: string): boolean {
  return NAMESPACE_PATTERN.test(text);
}
