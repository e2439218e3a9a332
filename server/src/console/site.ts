import type { Config } from "../config/config.ts";
import { isLoopback } from "../config/formats.ts";
import type { ReadHeader } from "../transport/http/web-page.ts";

/** The address of the console's page as browsers know it, and the cookies that belong to it. */
export type ConsoleSite = ReturnType<typeof createConsoleSite>;

/** The session of a person who is signed in, and a sign-in at the issuer that has begun. */
export type CookieName = "session" | "sign-in";

/**
 * Creates the site.
 *
 * - `Sec-Fetch-Site`: https://www.w3.org/TR/fetch-metadata/; browsers send it to https and loopback addresses, and no script
 *   can set it.
 * - `__Host-`: https://www.rfc-editor.org/rfc/rfc6265bis#section-4.1.3.2; the browser accepts such a cookie only from this
 *   host itself and only by https.
 */
export function createConsoleSite(config: Config) {
  /** The public origin, if the server cannot know it. */
  const origin = config.ONCEWARD_CONSOLE_ORIGIN;
  /** Whether the server itself speaks TLS. */
  const tls = config.ONCEWARD_TLS_CERT !== undefined;
  const isSecure = origin === undefined ? tls : origin.startsWith("https:");
  const prefix = isSecure ? "__Host-onceward-" : "onceward-";
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  const canSignIn = isSecure || isLoopback(config.ONCEWARD_HOST) || origin !== undefined;

  function originOf(header: ReadHeader): string {
    return origin ?? `${tls ? "https" : "http"}://${header("host")?.toLowerCase()}`;
  }

  function isSameOrigin(header: ReadHeader): boolean {
    const fetchSite = header("sec-fetch-site");
    return fetchSite === undefined ? header("origin") === originOf(header) : fetchSite === "same-origin";
  }

  function readCookie(cookie: CookieName, header: ReadHeader): string | undefined {
    const start = `${prefix}${cookie}=`;
    const pairs = header("cookie")?.split(";") ?? [];
    return pairs
      .map((pair) => pair.trim())
      .find((pair) => pair.startsWith(start))
      ?.slice(start.length);
  }

  return {
    /** Whether cookies are protected on their way. Otherwise there is no sign-in, and no cookie is looked at. */
    canSignIn,
    /** Whether browsers reach the page by https only. */
    isSecure,
    /** Returns the origin of the page that a request belongs to, such as `https://onceward.example`. */
    originOf,
    /** Whether a request comes from a script of the page itself. */
    isSameOrigin,
    /** Returns the value of one of our cookies, from any page. */
    readCookie,
    sessionCookie: (header: ReadHeader) =>
      canSignIn && isSameOrigin(header) ? readCookie("session", header) : undefined,
    /** Returns the `Set-Cookie` header that stores a cookie; undefined as its value removes it. */
    setCookie(cookie: CookieName, value = "", maxAgeS?: number): string {
      const ageS = value === "" ? 0 : maxAgeS;
      const age = ageS === undefined ? "" : `; Max-Age=${ageS}`;
      return `${prefix}${cookie}=${value}; ${attributes}${age}`;
    },
  };
}
