import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";

/** What a page without a session knows of the server: how people can sign in, and where clients call it. */
export interface SignInOptions {
  readonly oidc: boolean;
  /** The OIDC issuer's address; undefined without `oidc`. */
  readonly issuer?: string;
  /** The server's own port for gRPC; undefined if the system chose it. */
  readonly grpcPort?: number;
}

/** Returns what the server says without a session. Throws a ConnectError. */
export async function fetchSignInOptions(): Promise<SignInOptions> {
  const response = await request("GET", "sign-in-options");
  return await response.json();
}

/** Exchanges an API key for a session, whose cookie the browser keeps. Throws a ConnectError. */
export async function signIn(apiKey: string): Promise<void> {
  await request("POST", "session", JSON.stringify({ apiKey }));
}

/** Ends this browser's session, or all sessions of the same key or token identity. Throws a ConnectError. */
export async function signOut(which: "here" | "everywhere"): Promise<void> {
  await request("DELETE", which === "here" ? "session" : "sessions");
}

/** Returns the address that begins a sign-in at the OIDC issuer, and then leads to `path` below `/console`. */
export function oidcStartAddress(path: string): string {
  return `/console/api/oidc/start?${new URLSearchParams({ return: `/console${path}` })}`;
}

async function request(method: string, path: string, body?: string): Promise<Response> {
  const init: RequestInit =
    body === undefined ? { method } : { method, body, headers: { "content-type": "application/json" } };
  const response = await fetch(`/console/api/${path}`, init).catch((error: unknown) => {
    throw new ConnectError("The server does not answer.", Code.Unavailable, undefined, undefined, error);
  });
  if (!response.ok) throw await errorOf(response);
  return response;
}

async function errorOf(response: Response): Promise<ConnectError> {
  const fallback = new ConnectError(`The server answered ${response.status}.`, Code.Unknown);
  const json = await response.json().catch(() => undefined);
  if (json === undefined) return fallback;
  return errorFromJson(json, response.headers, fallback);
}
