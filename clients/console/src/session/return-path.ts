const BASE = "/console";
/** Stands for the page's own origin: the check needs no browser. */
const ORIGIN = "https://console.invalid";

/**
 * Returns the path below `/console` that a sign-in leads to: the one that `requested` names, without `/console`,
 * or "/" if it leads elsewhere. A link from outside must not choose another site (an open redirect), so the text is
 * resolved as a browser resolves it.
 */
export function returnPathOf(requested: string | null): string {
  if (requested === null || !requested.startsWith("/")) return "/";
  const url = URL.parse(requested, ORIGIN);
  if (url === null || url.origin !== ORIGIN) return "/";
  if (!url.pathname.startsWith(`${BASE}/`)) return "/";
  const path = url.pathname.slice(BASE.length);
  const leadsAway = path.startsWith("//") || path.startsWith("/api/") || path.startsWith("/sign-in");
  return leadsAway ? "/" : `${path}${url.search}`;
}

/** Returns the sign-in page's path that leads back to `path`, a path below `/console`. */
export function signInPath(path: string, error: string | undefined): string {
  const parameters = new URLSearchParams();
  if (path !== "/") parameters.set("return", `${BASE}${path}`);
  if (error !== undefined) parameters.set("error", error);
  const query = parameters.toString();
  return query === "" ? "/sign-in" : `/sign-in?${query}`;
}
