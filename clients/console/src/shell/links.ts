import { type Audience, type NavigationLink, ROUTES } from "../routes.ts";
import type { Role } from "../session/session.ts";

/** Returns the navigation of a role. A caller sees the tenant's, and on its screens which role they need. */
export function linksFor(role: Role): readonly NavigationLink[] {
  return ROUTES.flatMap(({ audience, link }) =>
    link !== undefined && isForNavigation(audience, role) ? [link] : [],
  );
}

function isForNavigation(audience: Audience, role: Role): boolean {
  return audience === "both" || audience === (role === "OPERATOR" ? "operator" : "tenant");
}

/** Returns the role that a screen needs and the session does not have; undefined: it has it. */
export function missingRole(audience: Audience, role: Role): Role | undefined {
  switch (audience) {
    case "both":
      return role === "CALLER" ? "TENANT_ADMIN" : undefined;
    case "tenant":
      return role === "TENANT_ADMIN" ? undefined : "TENANT_ADMIN";
    case "operator":
      return role === "OPERATOR" ? undefined : "OPERATOR";
    default:
      return audience satisfies never;
  }
}
