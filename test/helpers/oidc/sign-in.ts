import type { Addresses } from "../../../server/src/server.ts";
import { type BrowserAnswer, browse, setCookies } from "../console/browser.ts";

type Port = Pick<Addresses, "httpPort">;

/** A sign-in that has been sent to the issuer. */
export interface BegunSignIn {
  /** The issuer's address. */
  readonly location: string;
  /** The `Cookie` header of the sign-in. */
  readonly cookie: string;
  /** The cookie's attributes, such as `HttpOnly`. */
  readonly attributes: readonly string[];
}

/** Begins a sign-in at the issuer. */
export async function beginSignIn(server: Port, returnPath = "/console/"): Promise<BegunSignIn> {
  const query = new URLSearchParams({ return: returnPath });
  const { status, headers } = await browse(server, `/console/api/oidc/start?${query}`);
  const [cookie, ...attributes] = (setCookies(headers)[0] ?? "").split("; ");
  if (status !== 302 || !cookie) throw new Error(`the sign-in has not begun: ${status} ${headers.location}`);
  return { location: String(headers.location), cookie, attributes };
}

/** Visits the issuer, which sends the browser back; returns the path and query to which it does. */
export async function visitIssuer({ location }: Pick<BegunSignIn, "location">): Promise<string> {
  const answer = await fetch(location, { redirect: "manual" });
  const back = answer.headers.get("location");
  if (back === null) throw new Error(`the issuer answered with ${answer.status}: ${await answer.text()}`);
  const { pathname, search } = new URL(back);
  return `${pathname}${search}`;
}

/** Signs in at the issuer: begins on one replica, and ends on another or the same. Returns the last answer. */
export async function signInAtIssuer(
  server: Port,
  {
    endsOn = server,
    returnPath = "/console/",
  }: { readonly endsOn?: Port; readonly returnPath?: string } = {},
): Promise<BrowserAnswer> {
  const begun = await beginSignIn(server, returnPath);
  const path = await visitIssuer(begun);
  // The redirect URI names the replica's port, where there is no balancer.
  const host = new URL(new URL(begun.location).searchParams.get("redirect_uri") ?? "").host;
  return browse(endsOn, path, { headers: { cookie: begun.cookie, host } });
}
