import { hkdfSync, randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { EncryptJWT, jwtDecrypt } from "jose";
import type { Logger } from "pino";
import * as v from "valibot";
import type { Authenticator } from "../access/authenticate.ts";
import { Refusal } from "../domain/refusal.ts";
import { requireServed } from "../domain/tenant.ts";
import { answerEmpty, headersOf } from "./answers.ts";
import type { Attempts } from "./attempts.ts";
import type { IssuerClient, SignInSecrets } from "./issuer-client.ts";
import type { Sessions } from "./sessions.ts";
import type { ConsoleSite } from "./site.ts";

/** The page that is shown after a sign-in. */
const HOME = "/console/";

/** Longer than every path with filters. */
const MAX_LENGTH = 2000;
/** The address that relative ones are resolved against: a text that leads to another one is refused. */
const BASE = "http://console.invalid";

/**
 * Returns the path to which a person returns after a sign-in: a page of the console, as the URL parser of browsers
 * understands the text. Returns HOME for any other text, so that no link leads through a sign-in to another site.
 */
export function returnPath(text: string | null | undefined): string {
  if (!text?.startsWith(HOME) || text.length > MAX_LENGTH || !URL.canParse(text, BASE)) return HOME;
  const { origin, pathname, search, hash } = new URL(text, BASE);
  const isPage = origin === BASE && pathname.startsWith(HOME) && !pathname.startsWith("/console/api/");
  return isPage ? `${pathname}${search}${hash}` : HOME;
}

/** The endpoints between which a browser visits the issuer. */
export type IssuerSignIn = ReturnType<typeof createIssuerSignIn>;

/** The time that a person has to sign in at the issuer. */
const MAX_AGE_S = 600;
const TIMEOUT_MS = 10_000;
const CALLBACK = "/console/api/oidc/callback";

/** A sign-in that has begun: in a cookie, so that it may end on another replica. */
const STARTED = v.object({
  state: v.string(),
  nonce: v.string(),
  codeVerifier: v.string(),
  returnPath: v.string(),
});
type Started = SignInSecrets & { readonly returnPath: string };

/** Why a sign-in failed, as `/console/sign-in?error=` says it: a reason of the catalogue, or one of these. */
type Failure = Refusal["reason"] | "SIGN_IN_EXPIRED";

/** Creates the endpoints of the sign-in at an issuer. */
export function createIssuerSignIn(options: {
  readonly site: ConsoleSite;
  readonly sessions: Pick<Sessions, "start">;
  readonly issuer: IssuerClient;
  readonly authenticator: Pick<Authenticator, "authenticateIdentity">;
  readonly attempts: Attempts;
  /** The secret that keys the encryption of cookies; the same on every replica. */
  readonly pepper: string;
  readonly log: Logger;
}) {
  const { site, sessions, issuer, authenticator, attempts, log } = options;
  const sealed = createSealedSignIns(options.pepper);

  function redirectToError(response: ServerResponse, failure: Failure, path: string): void {
    const query = new URLSearchParams({ error: failure, ...(path !== HOME && { return: path }) });
    redirect(response, `/console/sign-in?${query}`, [site.setCookie("sign-in", undefined)]);
  }

  /** Returns the reason of an error for the page; logs a defect. */
  function failureOf(error: unknown): Failure {
    if (error instanceof Refusal) return error.reason;
    log.error({ err: error }, "a sign-in at the issuer failed by a defect");
    return "INTERNAL";
  }

  async function finish(request: IncomingMessage, started: Started): Promise<string> {
    const header = headersOf(request);
    const identity = await issuer.finish(urlOf(request, site), started);
    const deadline = { atMs: performance.now() + TIMEOUT_MS, cancelled: false };
    const principal = await authenticator.authenticateIdentity(identity, deadline);
    if (principal.role !== "OPERATOR") requireServed(principal.tenant);
    attempts.countSignIn(principal.actor);
    const namespaces = principal.role === "OPERATOR" ? undefined : principal.namespaces;
    return await sessions.start({
      principal,
      credential: {
        kind: "TOKEN",
        actor: principal.actor,
        issuer: issuer.issuer,
        role: principal.role,
        namespaces: namespaces && [...namespaces],
      },
      replaced: site.readCookie("session", header),
      requestId: randomUUID(),
    });
  }

  return {
    issuer: issuer.issuer,
    /** `GET /console/api/oidc/start?return=PATH`: sends the browser to the issuer. */
    async start(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const url = urlOf(request, site);
      const path = returnPath(url.searchParams.get("return"));
      if (!site.canSignIn) return redirectToError(response, "INVALID_REQUEST", path);
      try {
        const begun = await issuer.begin(`${url.origin}${CALLBACK}`);
        const cookie = await sealed.seal({ ...begun.secrets, returnPath: path });
        redirect(response, begun.url, [site.setCookie("sign-in", cookie, MAX_AGE_S)]);
      } catch (error) {
        redirectToError(response, failureOf(error), path);
      }
    },
    /** `GET /console/api/oidc/callback`: signs in with the issuer's answer, and sends the browser to PATH. */
    async callback(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const cookie = site.readCookie("sign-in", headersOf(request));
      const started = site.canSignIn && cookie ? await sealed.open(cookie) : undefined;
      // The issuer is asked only for a browser that has begun a sign-in here.
      if (started === undefined) return redirectToError(response, "SIGN_IN_EXPIRED", HOME);
      const { returnPath: path } = started;
      try {
        const { remoteAddress } = request.socket;
        const session = await attempts.runAtIssuer(remoteAddress, () => finish(request, started));
        redirect(response, path, [site.setCookie("session", session), site.setCookie("sign-in", undefined)]);
      } catch (error) {
        redirectToError(response, failureOf(error), path);
      }
    },
  };
}

function redirect(response: ServerResponse, location: string, cookies: readonly string[]): void {
  answerEmpty(response, 302, { location, "set-cookie": cookies });
}

/** Returns the address of a request as the browser knows it. */
function urlOf(request: IncomingMessage, site: ConsoleSite): URL {
  const [path = "", query = ""] = (request.url ?? "").split(/\?(.*)/s, 2);
  const url = new URL(path, site.originOf(headersOf(request)));
  url.search = query;
  return url;
}

/**
 * Seals sign-ins that have begun: encrypted, so that the browser keeps no secret that it could use, and valid for
 * MAX_AGE_S.
 */
function createSealedSignIns(pepper: string) {
  const key = new Uint8Array(hkdfSync("sha256", pepper, "", "onceward console sign-in", 32));
  const alg = { alg: "dir", enc: "A256GCM" };
  return {
    seal: (started: Started): Promise<string> =>
      new EncryptJWT({ ...started })
        .setProtectedHeader(alg)
        .setIssuedAt()
        .setExpirationTime(`${MAX_AGE_S}s`)
        .encrypt(key),
    /** Returns undefined if the text was not sealed here, or has expired. */
    async open(text: string): Promise<Started | undefined> {
      try {
        const { payload } = await jwtDecrypt(text, key, {
          keyManagementAlgorithms: [alg.alg],
          contentEncryptionAlgorithms: [alg.enc],
          requiredClaims: ["exp"],
        });
        return v.parse(STARTED, payload);
      } catch {
        return undefined;
      }
    },
  };
}
