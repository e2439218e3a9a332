import { request } from "node:http";
import type { Addresses } from "../../../server/src/replica/server.ts";

/** A request to the console, as a browser sends it. */
export interface BrowserRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The answer to a BrowserRequest. Redirects are not followed. */
export interface BrowserAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  /** The body as JSON; undefined if it is not JSON. */
  readonly json: unknown;
}

/** The headers that a script of the console's page sends. */
export const OF_PAGE = { "sec-fetch-site": "same-origin" };

/** Sends a request to the HTTP port. */
export function browse(
  { httpPort }: Pick<Addresses, "httpPort">,
  path: string,
  { method = "GET", headers = {}, body }: BrowserRequest = {},
): Promise<BrowserAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: httpPort, method, path, headers, agent: false });
    sent.on("error", reject);
    sent.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const received = Buffer.concat(chunks);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: received,
          json: parse(received),
        });
      });
    });
    sent.end(body);
  });
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

/** Posts an API key to the sign-in endpoint. */
export function postKey(
  server: Pick<Addresses, "httpPort">,
  apiKey: string,
  headers: Readonly<Record<string, string>> = OF_PAGE,
): Promise<BrowserAnswer> {
  return browse(server, "/console/api/session", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ apiKey }),
  });
}

/** Signs in with an API key; returns the `Cookie` header of the session. */
export async function signIn(server: Pick<Addresses, "httpPort">, apiKey: string): Promise<string> {
  const answer = await postKey(server, apiKey);
  const cookie = sessionCookie(answer);
  if (answer.status !== 204 || cookie === undefined)
    throw new Error(`signing in was answered with ${answer.status}: ${answer.body}`);
  return cookie;
}

/** Returns the `Cookie` header that an answer's session cookie makes; undefined if it sets none. */
export function sessionCookie({ headers }: BrowserAnswer): string | undefined {
  return setCookies(headers)
    .map((cookie) => /^[\w-]+-session=[\w-]+/.exec(cookie)?.[0])
    .find((cookie) => cookie !== undefined);
}

/** Returns the `Set-Cookie` headers of an answer. */
export function setCookies(headers: BrowserAnswer["headers"]): readonly string[] {
  return [headers["set-cookie"] ?? []].flat();
}

/** Calls an RPC as the console's page does. `headers` are added, or replace its own. */
export function callRpc(
  server: Pick<Addresses, "httpPort">,
  rpc: string,
  headers: Readonly<Record<string, string>>,
  message: object = {},
): Promise<BrowserAnswer> {
  return browse(server, `/onceward.v1.${rpc}`, {
    method: "POST",
    headers: { "content-type": "application/json", "connect-protocol-version": "1", ...OF_PAGE, ...headers },
    body: JSON.stringify(message),
  });
}

/** Returns the reason in an answer's ErrorInfo; undefined if it has none. */
export function reasonOf({ json }: BrowserAnswer): string | undefined {
  const { details = [] } = (json ?? {}) as {
    details?: readonly { readonly debug?: { readonly reason?: string } }[];
  };
  return details.map(({ debug }) => debug?.reason).find((reason) => reason !== undefined);
}

/** Asks who is signed in: the actor, or the reason of the refusal. */
export async function whoIs(
  server: Pick<Addresses, "httpPort">,
  cookie: string,
): Promise<string | undefined> {
  const answer = await callRpc(server, "IdentityService/WhoAmI", { cookie });
  return answer.status === 200 ? (answer.json as { readonly actor?: string }).actor : reasonOf(answer);
}
