import { type ComponentType, lazy } from "react";
import type { Role } from "./session/session.ts";

/** Who a screen is for: the administrators of a tenant, the operator, or both. */
export type Audience = "tenant" | "operator" | "both";

/** A screen, and where it is. */
export interface ScreenRoute {
  /** A wouter pattern below `/console`. */
  readonly path: string;
  readonly audience: Audience;
  /** Loads the screen's file, a chunk of its own. */
  readonly load: () => Promise<{ readonly default: ComponentType }>;
  readonly screen: ComponentType;
  /** Where the navigation shows the screen; undefined: another screen links to it. */
  readonly link?: NavigationLink;
}

/** An entry of the navigation. */
export interface NavigationLink {
  readonly href: string;
  readonly label: string;
  readonly group: Group;
  /** The letter that opens the screen after `g`. */
  readonly letter: string;
}

/** What a person comes for. */
type Group = "Watch" | "Look up" | "Tune" | "Access";

/** @param entry the entry's group, label and letter. */
function route(
  path: string,
  audience: Audience,
  load: () => Promise<{ default: ComponentType }>,
  entry?: readonly [group: Group, label: string, letter: string],
): ScreenRoute {
  const loaded = { load, screen: lazy(load) };
  if (entry === undefined) return { path, audience, ...loaded };
  const [group, label, letter] = entry;
  return { path, audience, ...loaded, link: { href: path, group, label, letter } };
}

/** The path of what has no screen. The pattern "*" would not match a path with a line break. */
export const ANY_PATH = /^/;

/** Every screen. The navigation shows the entries in this order. */
export const ROUTES: readonly ScreenRoute[] = [
  route("/", "tenant", () => import("./screens/home/home.tsx"), ["Watch", "Home", "h"]),
  route("/tenants", "operator", () => import("./screens/tenants/tenants.tsx"), ["Watch", "Tenants", "t"]),
  route("/tenants/:name", "operator", () => import("./screens/tenant/tenant.tsx")),
  route("/fleet", "operator", () => import("./screens/fleet/fleet.tsx"), ["Watch", "Fleet", "f"]),
  route("/ambiguous", "tenant", () => import("./screens/ambiguous/ambiguous.tsx"), [
    "Watch",
    "Ambiguous",
    "a",
  ]),
  // A record that is opened from the queue keeps the queue's filters in its address.
  route("/ambiguous/:namespace/:key", "tenant", () => import("./screens/record/record.tsx")),
  route("/refused", "tenant", () => import("./screens/refused/refused.tsx"), ["Watch", "Refused", "r"]),
  route("/jobs", "tenant", () => import("./screens/jobs/jobs.tsx"), ["Watch", "Jobs", "j"]),
  route("/jobs/:id", "tenant", () => import("./screens/jobs/job.tsx")),
  route("/records", "tenant", () => import("./screens/records/records.tsx"), ["Look up", "Records", "e"]),
  route("/records/:namespace/:key", "tenant", () => import("./screens/record/record.tsx")),
  route("/audit", "both", () => import("./screens/audit/audit.tsx"), ["Look up", "Audit", "u"]),
  route("/namespaces", "tenant", () => import("./screens/namespaces/namespaces.tsx"), [
    "Tune",
    "Namespaces",
    "n",
  ]),
  route("/namespaces/:name", "tenant", () => import("./screens/namespace/namespace.tsx")),
  route("/key-quality", "tenant", () => import("./screens/key-quality/key-quality.tsx"), [
    "Tune",
    "Key quality",
    "q",
  ]),
  route("/settings", "tenant", () => import("./screens/settings/settings.tsx"), ["Tune", "Settings", "s"]),
  route("/operator-keys", "operator", () => import("./screens/operator-keys/operator-keys.tsx"), [
    "Access",
    "Operator keys",
    "k",
  ]),
  route("/api-keys", "tenant", () => import("./screens/api-keys/api-keys.tsx"), ["Access", "API keys", "k"]),
];

/** Returns the navigation of a role. A caller, whose page is the same at each address, has the tenant's. */
export function linksFor(role: Role): readonly NavigationLink[] {
  const own = role === "OPERATOR" ? "operator" : "tenant";
  return ROUTES.flatMap(({ audience, link }) => (link && ["both", own].includes(audience) ? [link] : []));
}

/** Returns the role that a screen needs and the session does not have; undefined: it has it. */
export function missingRole(audience: Audience, role: Role): Role | undefined {
  const needed = audience === "operator" ? "OPERATOR" : "TENANT_ADMIN";
  return role === needed || (audience === "both" && role === "OPERATOR") ? undefined : needed;
}
