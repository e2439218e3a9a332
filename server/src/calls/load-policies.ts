import { NAMESPACE_PATTERN } from "../domain/limits.ts";
import { NEVER_DECLARED } from "../domain/tenant.ts";
import type { Answer, Call } from "./call.ts";

/** A handler that begins once the policies of its request's namespaces are loaded: at once, if they are. */
export function withPolicies<Request, Response>(
  namespacesOf: (request: Request) => readonly string[],
  handle: (request: Request, call: Call) => Answer<Response>,
): (request: Request, call: Call) => Answer<Response> {
  return (request, call) => {
    // Spares nearly all tenants the list.
    if (neverDeclared(call)) return handle(request, call);
    const loading = loadPolicies(namespacesOf(request), call);
    return loading === undefined ? handle(request, call) : loading.then(() => handle(request, call));
  };
}

/**
 * Loads the policies of those of the namespaces that the caller may use; undefined: they are loaded. Names that no
 * namespace can have are left to the parsers.
 *
 * @throws Refusal as NamespacePolicies.load.
 */
export function loadPolicies(namespaces: readonly string[], call: Call): Promise<void> | undefined {
  const { principal } = call;
  if (principal.role === "OPERATOR" || neverDeclared(call)) return undefined;
  const { tenant, namespaces: allowed } = principal;
  const missing: string[] = [];
  for (const namespace of new Set(namespaces)) {
    const isWanted = NAMESPACE_PATTERN.test(namespace) && allowed?.has(namespace) !== false;
    if (isWanted && !tenant.namespaces.isLoaded(namespace)) missing.push(namespace);
  }
  return missing.length === 0 ? undefined : tenant.namespaces.load(missing, call);
}

function neverDeclared({ principal }: Call): boolean {
  return principal.role === "OPERATOR" || principal.tenant.namespaces === NEVER_DECLARED;
}
