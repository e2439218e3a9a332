/** A screen of the console that tests of all screens visit. */
export interface Route {
  /** The name of its pictures. */
  readonly name: string;
  /** Below `/console`. */
  readonly path: string;
  /** Whose screen it is. */
  readonly role: "adminKey" | "operatorKey";
}

/** Every screen of a tenant admin, with the namespaces of the planted traffic. */
const TENANT_ROUTES: readonly Route[] = [
  ["home", "/"],
  ["retention", "/retention"],
  ["retention-namespace", "/retention/webhooks"],
  ["ambiguous", "/ambiguous"],
  ["records", "/records"],
  ["namespaces", "/namespaces"],
  ["namespace", "/namespaces/payments"],
  ["settings", "/settings"],
  ["api-keys", "/api-keys"],
  ["key-quality", "/key-quality"],
  ["jobs", "/jobs"],
  ["audit", "/audit"],
].map(([name = "", path = ""]) => ({ name, path, role: "adminKey" }));

const OPERATOR_ROUTES: readonly Route[] = [
  ["tenants", "/tenants"],
  ["fleet", "/fleet"],
  ["operator-audit", "/audit"],
].map(([name = "", path = ""]) => ({ name, path, role: "operatorKey" }));

/** Every screen but the sign-in. */
export const ROUTES = [...TENANT_ROUTES, ...OPERATOR_ROUTES];
