import type { Seed } from "./seed.ts";

/** A screen of the console that tests of all screens visit. */
export interface Route {
  /** The name of its pictures. */
  readonly name: string;
  /** Below `/console`. */
  readonly path: string;
  /** Whose screen it is. */
  readonly role: "adminKey" | "operatorKey";
}

/** What the screens of one namespace, record and job show. */
interface Shown extends Pick<Seed, "record" | "jobId"> {
  /** The namespace whose retention, and the one whose policy, is shown. */
  readonly retentionOf: string;
  readonly policyOf: string;
}

/** Returns every screen of a tenant admin. */
export function tenantRoutes({ record, jobId, retentionOf, policyOf }: Shown): readonly Route[] {
  return [
    ["home", "/"],
    ["refused", "/refused"],
    ["retention", `/namespaces/${retentionOf}`],
    ["ambiguous", "/ambiguous"],
    ["records", "/records"],
    ["record-of-key", `/records/${record.namespace}/${encodeURIComponent(record.key)}`],
    ["namespaces", "/namespaces"],
    ["namespace", `/namespaces/${policyOf}`],
    ["settings", "/settings"],
    ["api-keys", "/api-keys"],
    ["key-quality", "/key-quality"],
    ["jobs", "/jobs"],
    ["job", `/jobs/${jobId}`],
    ["audit", "/audit"],
  ].map(([name = "", path = ""]) => ({ name, path, role: "adminKey" }));
}

/** Returns every screen but the sign-in, with the tenant and the namespaces of the planted traffic. */
export function routesOf({ tenant, record, jobId }: Seed): readonly Route[] {
  const operators = [
    ["tenants", "/tenants"],
    ["tenant", `/tenants/${tenant}`],
    ["fleet", "/fleet"],
    ["operator-audit", "/audit"],
  ].map(([name = "", path = ""]): Route => ({ name, path, role: "operatorKey" }));
  return [...tenantRoutes({ record, jobId, retentionOf: "webhooks", policyOf: "payments" }), ...operators];
}
