import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import * as v from "valibot";
import { type ApiKey, digestSecret, formatApiKey, notAnApiKey, parseApiKey } from "../access/api-key.ts";
import { credentialInvalid, invalidRequest, Refusal } from "../domain/refusal.ts";
import { IdentityService } from "../gen/onceward/v1/identity_pb.ts";
import { REQUEST_ID_HEADER } from "../transport/errors.ts";
import type { CallHead } from "../transport/observed-call.ts";
import type { Pipeline } from "../transport/pipeline.ts";
import type { Route } from "../transport/route.ts";
import { answerEmpty, headersOf } from "./answers.ts";
import type { Attempts } from "./attempts.ts";
import type { Sessions } from "./sessions.ts";
import type { ConsoleSite } from "./site.ts";
import type { EndedSessions } from "./store/console-sessions.ts";

/** The endpoints that begin and end sessions. They reject with the errors that their caller may see. */
export type SignIn = ReturnType<typeof createSignIn>;

/** Several times the length of a body with an API key. */
const MAX_BODY_BYTES = 1024;
const BODY = v.strictObject({ apiKey: v.string() });

/** How signing in shows in metrics and, if it is denied, in the audit. */
const ROUTE: Route = {
  method: { ...IdentityService.method.whoAmI, name: "SignIn" },
  path: "/console/api/session",
  role: undefined,
  handle: () => {
    throw new Refusal("INTERNAL", "signing in has no message");
  },
};

/** Creates the endpoints of the sign-in with a key, and of the sign-out. */
export function createSignIn({
  site,
  sessions,
  pipeline,
  attempts,
  pepper,
}: {
  readonly site: ConsoleSite;
  readonly sessions: Pick<Sessions, "start" | "end">;
  readonly pipeline: Pick<Pipeline, "authenticate">;
  readonly attempts: Attempts;
  /** As AuthenticatorOptions. */
  readonly pepper: string;
}) {
  /** @throws Refusal unless a script of the page itself has sent the request. */
  function requireOwnPage(request: IncomingMessage): void {
    if (!site.canSignIn) throw invalidRequest("connection", UNPROTECTED);
    if (!site.isSameOrigin(headersOf(request)))
      throw invalidRequest("origin", "must be that of the console: ONCEWARD_CONSOLE_ORIGIN names it");
  }

  async function start(request: IncomingMessage, text: string): Promise<string> {
    const apiKey = parseApiKey(text);
    if (apiKey === undefined) throw notAnApiKey(text);
    const requestId = randomUUID();
    const principal = await pipeline.authenticate(ROUTE, headOf(request, apiKey, requestId));
    attempts.countSignIn(principal.actor);
    return await sessions.start({
      principal,
      credential: {
        kind: "API_KEY",
        actor: apiKey.id,
        keyDigest: digestSecret(apiKey.secret, pepper),
      },
      replaced: site.readCookie("session", headersOf(request)),
      requestId,
    });
  }

  return {
    /** `POST /console/api/session`: signs in with an API key. */
    async withKey(request: IncomingMessage, response: ServerResponse): Promise<void> {
      requireOwnPage(request);
      const { "content-type": type = "" } = request.headers;
      if (!/^application\/json(;|$)/i.test(type))
        throw invalidRequest("content-type", "must be application/json");
      // Before the attempt: bodies that arrive slowly must not take the places of others' attempts.
      const text = await readKey(request);
      const cookie = await attempts.run(request.socket.remoteAddress, () => start(request, text));
      answerEmpty(response, 204, { "set-cookie": site.setCookie("session", cookie) });
    },
    /** `DELETE /console/api/session` and `DELETE /console/api/sessions`. */
    async out(request: IncomingMessage, response: ServerResponse, which: EndedSessions): Promise<void> {
      requireOwnPage(request);
      const cookie = site.readCookie("session", headersOf(request)) ?? "";
      // Not an attempt to sign in: failed sign-ins from the same address must not refuse a sign-out.
      const ended = await sessions.end(cookie, which, randomUUID());
      // Without a session, there is nothing to end, but it is not known whose other sessions were meant.
      if (!ended && which === "all") throw credentialInvalid();
      answerEmpty(response, 204, { "set-cookie": site.setCookie("session", undefined) });
    },
  };
}

const UNPROTECTED =
  "must be protected: the console signs in over TLS, on a loopback address, or with ONCEWARD_CONSOLE_ORIGIN behind a balancer";

/** Reads a body with an API key. @throws Refusal INVALID_REQUEST if it is malformed or larger than MAX_BODY_BYTES. */
async function readKey(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The connection stays open for the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).byteLength;
    if (bytes > MAX_BODY_BYTES) throw invalidRequest("body", `must be at most ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk as Buffer);
  }
  const body = v.safeParse(BODY, parseJson(Buffer.concat(chunks).toString()));
  if (body.success) return body.output.apiKey;
  const unknown = body.issues.find(({ expected }) => expected === "never");
  if (unknown !== undefined)
    throw invalidRequest(v.getDotPath(unknown) ?? "body", "is unknown; the only field is apiKey");
  throw invalidRequest("apiKey", "must be a text in a JSON object");
}

/** Returns undefined for a text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a sign-in with an API key as the pipeline sees it: a call with this key in its header. */
function headOf({ socket }: IncomingMessage, apiKey: ApiKey, requestId: string): CallHead {
  const headers = new Map([
    ["authorization", `Bearer ${formatApiKey(apiKey)}`],
    [REQUEST_ID_HEADER, requestId],
  ]);
  return {
    peer: socket.remoteAddress,
    header: (name) => headers.get(name),
    sessionCookie: undefined,
    get cancelled() {
      return socket.destroyed;
    },
    get signal() {
      const controller = new AbortController();
      socket.once("close", () => controller.abort());
      return controller.signal;
    },
  };
}
