import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { refuseMethod, refuseRequest } from "../transport/http/port.ts";
import { createFileSender } from "../transport/http/static-files.ts";
import type { WebPage } from "../transport/http/web-page.ts";
import { answerEmpty, answerError, answerJson } from "./answers.ts";
import type { ConsoleFiles } from "./files.ts";
import type { IssuerSignIn } from "./issuer-sign-in.ts";
import type { SignIn } from "./sign-in.ts";
import type { ConsoleSite } from "./site.ts";

type Endpoint = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * Only what the server itself serves is loaded, run or sent; nothing is inline, and no other page may show this one.
 * https://www.w3.org/TR/CSP3/
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
};
const WITH_TLS = { "strict-transport-security": "max-age=31536000" };

/** Creates the console: a page for tenant admins and operators, and the endpoints by which they sign in. */
export function createConsole({
  site,
  files,
  signIn,
  issuerSignIn,
  grpcPort,
  log,
}: {
  readonly site: ConsoleSite;
  /** Undefined: the page was not built. */
  readonly files: ConsoleFiles | undefined;
  readonly signIn: SignIn;
  /** Undefined: the console offers no sign-in at an issuer. */
  readonly issuerSignIn: IssuerSignIn | undefined;
  /** For the page's examples of a first call; 0: the system chooses the port. */
  readonly grpcPort: number;
  readonly log: Logger;
}): WebPage {
  const headers = Object.entries({ ...HEADERS, ...(site.isSecure && WITH_TLS) });
  const signInOptions = {
    ...{ oidc: issuerSignIn !== undefined, issuer: issuerSignIn?.issuer },
    ...(grpcPort > 0 && { grpcPort }),
  };
  /** By path and method. */
  const endpoints: Readonly<Record<string, Readonly<Record<string, Endpoint>>>> = {
    "/console/api/sign-in-options": { GET: async (_, response) => answerJson(response, signInOptions) },
    "/console/api/session": {
      POST: signIn.withKey,
      DELETE: (request, response) => signIn.out(request, response, "this"),
    },
    "/console/api/sessions": { DELETE: (request, response) => signIn.out(request, response, "all") },
    ...(issuerSignIn && {
      "/console/api/oidc/start": { GET: issuerSignIn.start },
      "/console/api/oidc/callback": { GET: issuerSignIn.callback },
    }),
  };
  const sendFile = createFileSender();

  function answerEndpoint(path: string, request: IncomingMessage, response: ServerResponse): void {
    const methods = endpoints[path];
    const endpoint = methods?.[request.method ?? ""];
    if (methods === undefined) refuseRequest(response, 404, NOTHING_HERE);
    else if (endpoint === undefined) refuseMethod(response, Object.keys(methods).join(", "));
    else
      endpoint(request, response).catch((error: unknown) => {
        // The browser has left.
        if (response.headersSent || request.socket.destroyed) response.destroy();
        else answerError(response, error, log);
      });
  }

  function answerFile(path: string, request: IncomingMessage, response: ServerResponse): void {
    const isAsset = path.startsWith("/console/assets/");
    // The page finds its screen by the path.
    const file = files?.get(path) ?? (isAsset ? undefined : files?.get("/console/index.html"));
    if (request.method !== "GET" && request.method !== "HEAD") refuseMethod(response, "GET, HEAD");
    else if (path === "/") answerEmpty(response, 307, { location: "/console/" });
    else if (path === "/console") answerEmpty(response, 308, { location: "/console/" });
    else if (files === undefined) answerNotBuilt(response);
    else if (file === undefined) refuseRequest(response, 404, NOTHING_HERE);
    else sendFile(file, request, response);
  }

  return {
    site,
    answer(path, request, response) {
      if (path !== "/" && path !== "/console" && !path.startsWith("/console/")) return false;
      for (const [name, value] of headers) response.setHeader(name, value);
      if (hasLargeBody(request)) response.setHeader("connection", "close");
      if (path.startsWith("/console/api/")) answerEndpoint(path, request, response);
      else answerFile(path, request, response);
      return true;
    },
  };
}

const NOTHING_HERE = "The console has nothing at this path. It begins at /console/.";

function answerNotBuilt(response: ServerResponse): void {
  response.writeHead(503, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" });
  response.end("The console is not built: run `npm run build:console`, and start the server again.\n");
}

/** Node reads and drops the rest of a body, so that its sender gets to the answer; a longer rest is cut off. */
const MAX_DROPPED_BYTES = 64 * 1024;

function hasLargeBody({ headers }: IncomingMessage): boolean {
  return (
    headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > MAX_DROPPED_BYTES
  );
}
