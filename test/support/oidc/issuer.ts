import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";
import { type Claims, makeSigningKey } from "../servers/issuer.ts";

/** A small issuer of OpenID Connect, at which one person is signed in. */
export interface OidcIssuer {
  /** The configuration of a server whose console signs in here. */
  readonly settings: Readonly<Record<string, string>>;
  readonly url: string;
  /** The claims of the person's next ID token: replace those of a valid token, or are added to them. */
  person: Claims;
  /** Whether the issuer asks before it sends the browser back: a page with the link "Continue". */
  asks: boolean;
  /** Replaces the answer to requests for a path; undefined: none. A status of 0 cuts the connection. */
  answer: ((path: string) => ForcedAnswer | undefined) | undefined;
  /** The paths that were requested. */
  readonly requests: readonly string[];
  /** Returns an access token with the person's claims, for the audience of the API. */
  accessToken(): Promise<string>;
  /** Stops the issuer, and closes its connections. */
  close(): Promise<void>;
}

export interface ForcedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A code that was given out and not redeemed. */
interface Grant {
  readonly redirectUri: string;
  readonly challenge: string;
  readonly nonce: string;
}

const CLIENT_ID = "onceward-console";
/** Has characters that the header encodes. */
const CLIENT_SECRET = "a secret: of 100% & more";
const AUDIENCE = "onceward-tests";

/** Starts an issuer on a free port. */
export async function startOidcIssuer(): Promise<OidcIssuer> {
  const { alg, kid, key, publicJwk } = await makeSigningKey("ES256", "key-1");
  const grants = new Map<string, Grant>();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => send(response, { status: 400, body: String(error) }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  function sign(claims: Claims): Promise<string> {
    const nowS = Math.floor(Date.now() / 1000);
    const all = { iss: url, sub: "somebody", iat: nowS, exp: nowS + 300, ...claims };
    return new SignJWT(all).setProtectedHeader({ alg, kid }).sign(key);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "", url);
    requests.push(pathname);
    const forced = issuer.answer?.(pathname);
    if (forced?.status === 0) response.destroy();
    else if (forced !== undefined) send(response, forced);
    else if (pathname === "/.well-known/openid-configuration") json(response, METADATA);
    else if (pathname === "/keys") json(response, { keys: [publicJwk] });
    else if (pathname === "/authorize") authorize(searchParams, response);
    else if (pathname === "/token") json(response, await redeem(request));
    else send(response, { status: 404 });
  }

  const METADATA = {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/keys`,
    response_types_supported: ["code"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: [alg],
    code_challenge_methods_supported: ["S256"],
  };

  /** The person is signed in already. */
  function authorize(query: URLSearchParams, response: ServerResponse): void {
    const need = (name: string, pattern: RegExp) => {
      const value = query.get(name) ?? "";
      if (!pattern.test(value)) throw new Error(`${name} is ${JSON.stringify(value)}`);
      return value;
    };
    need("response_type", /^code$/);
    need("client_id", new RegExp(`^${CLIENT_ID}$`));
    need("scope", /\bopenid\b/);
    need("code_challenge_method", /^S256$/);
    const redirectUri = need("redirect_uri", /^https?:\/\/[\w.:-]+\/console\/api\/oidc\/callback$/);
    const code = randomBytes(16).toString("hex");
    const [challenge, nonce] = [need("code_challenge", /^[\w-]{43}$/), need("nonce", /^[\w-]{20,}$/)];
    grants.set(code, { redirectUri, challenge, nonce });
    const back = `${redirectUri}?${new URLSearchParams({ code, state: need("state", /^[\w-]{20,}$/) })}`;
    if (issuer.asks) {
      const link = `<a href="${back.replaceAll("&", "&amp;")}">Continue</a>`;
      send(response, { status: 200, headers: { "content-type": "text/html" }, body: link });
    } else send(response, { status: 302, headers: { location: back } });
  }

  async function redeem(request: IncomingMessage): Promise<object> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = new URLSearchParams(Buffer.concat(chunks).toString());
    const [, basic = ""] = /^Basic (.*)$/.exec(request.headers.authorization ?? "") ?? [];
    const [id, secret] = Buffer.from(basic, "base64").toString().split(":").map(decodeForm);
    if (id !== CLIENT_ID || secret !== CLIENT_SECRET) throw new Error("another client");
    const code = body.get("code") ?? "";
    const grant = grants.get(code);
    grants.delete(code);
    if (grant === undefined) throw new Error("an unknown code");
    const challenge = createHash("sha256")
      .update(body.get("code_verifier") ?? "")
      .digest("base64url");
    if (challenge !== grant.challenge) throw new Error("another code_verifier");
    if (body.get("redirect_uri") !== grant.redirectUri) throw new Error("another redirect_uri");
    const { nonce } = grant;
    const idToken = await sign({ aud: CLIENT_ID, nonce, ...issuer.person });
    return { access_token: "unused", token_type: "Bearer", expires_in: 300, id_token: idToken };
  }

  const issuer: OidcIssuer = {
    settings: {
      ONCEWARD_JWT_ISSUER: url,
      ONCEWARD_JWT_AUDIENCE: AUDIENCE,
      ONCEWARD_JWT_JWKS_URL: `${url}/keys`,
      ONCEWARD_CONSOLE_OIDC_CLIENT_ID: CLIENT_ID,
      ONCEWARD_CONSOLE_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    },
    url,
    person: {},
    asks: false,
    answer: undefined,
    requests,
    accessToken: () => sign({ aud: AUDIENCE, ...issuer.person }),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return issuer;
}

/** https://www.rfc-editor.org/rfc/rfc6749#appendix-B */
function decodeForm(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

function json(response: ServerResponse, body: object): void {
  const headers = { "content-type": "application/json" };
  send(response, { status: 200, headers, body: JSON.stringify(body) });
}

function send(response: ServerResponse, { status, headers = {}, body = "" }: ForcedAnswer): void {
  response.writeHead(status, { ...headers, connection: "close" });
  response.end(body);
}
