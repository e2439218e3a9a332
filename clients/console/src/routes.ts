import { type ComponentType, lazy } from "react";

/** Who a screen is for: the administrators of a tenant, the operator, or both. */
export type Audience = "tenant" | "operator" | "both";

/** A screen, and where it is. */
export interface ScreenRoute {
  /** A wouter pattern below `/console`. */
  readonly path: string;
  readonly audience: Audience;
  /** Loaded when the screen is first shown, as a chunk of its own. */
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

type Load = () => Promise<{ default: ComponentType }>;

function route(
  path: string,
  audience: Audience,
  load: Load,
  entry?: Omit<NavigationLink, "href">,
): ScreenRoute {
  const screen = lazy(load);
  return entry === undefined
    ? { path, audience, screen }
    : { path, audience, screen, link: { href: path, ...entry } };
}

function entry(label: string, letter: string, group: Group) {
  return { label, letter, group };
}

/** The path of what has no screen. The pattern "*" would not match a path with a line break. */
export const ANY_PATH = /^/;

/** Every screen. The navigation shows the entries in this order. */
export const ROUTES: readonly ScreenRoute[] = [
  route("/", "tenant", () => import("./screens/home/home.tsx"), entry("Home", "h", "Watch")),
  route(
    "/tenants",
    "operator",
    () => import("./screens/tenants/tenants.tsx"),
    entry("Tenants", "t", "Watch"),
  ),
  route("/tenants/:name", "operator", () => import("./screens/tenant/tenant.tsx")),
  route("/fleet", "operator", () => import("./screens/fleet/fleet.tsx"), entry("Fleet", "f", "Watch")),
  route(
    "/ambiguous",
    "tenant",
    () => import("./screens/ambiguous/ambiguous.tsx"),
    entry("Ambiguous", "a", "Watch"),
  ),
  route("/jobs", "tenant", () => import("./screens/jobs/jobs.tsx"), entry("Jobs", "j", "Watch")),
  route("/jobs/:id", "tenant", () => import("./screens/jobs/job.tsx")),
  route(
    "/records",
    "tenant",
    () => import("./screens/records/records.tsx"),
    entry("Records", "e", "Look up"),
  ),
  route("/records/:namespace/:key", "tenant", () => import("./screens/record/record.tsx")),
  route("/audit", "both", () => import("./screens/audit/audit.tsx"), entry("Audit", "u", "Look up")),
  route("/retention/:namespace?", "tenant", () => import("./screens/retention/retention.tsx")),
  route(
    "/namespaces",
    "tenant",
    () => import("./screens/namespaces/namespaces.tsx"),
    entry("Namespaces", "n", "Tune"),
  ),
  route("/namespaces/:name", "tenant", () => import("./screens/namespace/namespace.tsx")),
  route(
    "/key-quality",
    "tenant",
    () => import("./screens/key-quality/key-quality.tsx"),
    entry("Key quality", "q", "Tune"),
  ),
  route(
    "/api-keys",
    "tenant",
    () => import("./screens/api-keys/api-keys.tsx"),
    entry("API keys", "k", "Access"),
  ),
  route(
    "/settings",
    "tenant",
    () => import("./screens/settings/settings.tsx"),
    entry("Settings", "s", "Access"),
  ),
];
