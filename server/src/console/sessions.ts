import { randomBytes } from "node:crypto";
import { digestSecret } from "../access/api-key.ts";
import { createRefreshingCache } from "../access/credential-cache.ts";
import type { KnownSession, SessionCredential } from "../access/sessions.ts";
import type { Connection, Runner } from "../database/pool.ts";
import { insertAuditEvents } from "../database/tenants/audit-events.ts";
import type { Deadline } from "../domain/operation.ts";
import { credentialInvalid } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import { createPacedQueue } from "../records/engine/paced-queue.ts";
import { type EndedSessions, endSessions, findSessions, storeSession } from "./store/console-sessions.ts";

/** The sessions of the console, as SessionFinder and more. A session is named by the value of its cookie, which only the browser keeps. */
export type Sessions = ReturnType<typeof createSessions>;

const VALUE_BYTES = 32;
/** The form of a cookie's value: VALUE_BYTES in base64url. */
const VALUE = /^[A-Za-z0-9_-]{43}$/;
/** Maximum time to wait for the turn of a sign-in or a sign-out, and to look for the session that is ended. */
const TIMEOUT_MS = 10_000;
/** Sign-ins and sign-outs that have a connection at once: those of one key wait for each other's locks. */
const MAX_TRANSACTIONS = 2;
/** The turns of operators; those of tenants are numbered from 1. */
const OPERATORS = 0;
const MAX_CACHED_SESSIONS = 5000;
const MAX_CACHE_BYTES = 8 * 1024 * 1024;
const SESSION_BYTES = 800;
/** Memory of a namespace's name beside its characters. */
const NAME_BYTES = 60;

/** The name of the resource in audit events. */
const TARGET = "console session";

/** Creates sessions. */
export function createSessions({
  database,
  pepper,
  maxAgeMs,
}: {
  readonly database: Connection;
  /** Secret that keys the digests of cookies' values: with another pepper, all sessions end. */
  readonly pepper: string;
  /** As AuthenticatorOptions. */
  readonly maxAgeMs?: number | undefined;
}) {
  const cache = createRefreshingCache<string, KnownSession>({
    load: (digests) => findSessions(database, digests),
    maxAgeMs,
    maxEntries: MAX_CACHED_SESSIONS,
    maxBytes: MAX_CACHE_BYTES,
    bytesOf: ({ credential }) =>
      (credential.kind === "TOKEN" ? (credential.namespaces ?? []) : []).reduce(
        (bytes, name) => bytes + name.length + NAME_BYTES,
        SESSION_BYTES,
      ),
    endsAtMs: ({ endsAtMs }) => endsAtMs,
  });

  const turns = createPacedQueue({ width: MAX_TRANSACTIONS });

  /** Runs a transaction in the turns of its tenant, so that no number of sign-ins keeps the connections from calls. */
  function inTurn<Result>(
    tenantId: number | undefined,
    work: (transaction: Runner) => Promise<Result>,
  ): Promise<Result> {
    return turns.run(tenantId ?? OPERATORS, deadlineFromNow(), () => database.transaction(work));
  }

  async function live(cookie: string, deadline: Deadline): Promise<KnownSession | undefined> {
    if (!VALUE.test(cookie)) return undefined;
    return await cache.get(digestSecret(cookie, pepper).toString("base64"), deadline);
  }

  return {
    async find(cookie: string, deadline: Deadline): Promise<KnownSession> {
      const session = await live(cookie, deadline);
      if (session === undefined) throw credentialInvalid();
      return session;
    },
    /**
     * Starts a session of a verified credential, and ends the one of the cookie that the browser sent, if any. Returns the new
     * cookie's value.
     *
     * @throws Refusal CREDENTIAL_INVALID if the credential has expired; OVERLOADED and DEADLINE_EXCEEDED, as `run` of createPacedQueue.
     */
    async start({
      principal,
      credential,
      replaced,
      requestId,
    }: {
      readonly principal: Principal;
      readonly credential: SessionCredential;
      /** The cookie's value that the browser sent; undefined: none. */
      readonly replaced: string | undefined;
      readonly requestId: string;
    }): Promise<string> {
      const cookie = randomBytes(VALUE_BYTES).toString("base64url");
      const tenant = principal.role === "OPERATOR" ? undefined : principal.tenant;
      const stored = await inTurn(tenant?.id, async (transaction) => {
        if (replaced !== undefined && VALUE.test(replaced))
          await endSessions(transaction, digestSecret(replaced, pepper), "this");
        const isStored = await storeSession(transaction, {
          digest: digestSecret(cookie, pepper),
          tenantId: tenant?.id,
          credential,
          expiresAtMs: principal.credential?.expiresAtMs,
        });
        if (!isStored) return false;
        const { actor } = principal;
        await insertAuditEvents(transaction, [
          { tenant, actor, action: "SignIn", target: TARGET, requestId, calls: 1 },
        ]);
        return true;
      });
      if (!stored) throw credentialInvalid();
      return cookie;
    },
    /**
     * Ends the session of a cookie's value, or all sessions of the same credential: here at once, on other replicas within
     * 10 s. Returns false if there is no live session. Throws as `start`.
     */
    async end(cookie: string, which: EndedSessions, requestId: string): Promise<boolean> {
      // An invented cookie costs no more than in a call.
      const session = await live(cookie, deadlineFromNow());
      if (session === undefined) return false;
      try {
        return await inTurn(session.tenantId, async (transaction) => {
          const owner = await endSessions(transaction, digestSecret(cookie, pepper), which);
          if (owner === undefined) return false;
          const action = which === "this" ? "SignOut" : "SignOutEverywhere";
          await insertAuditEvents(transaction, [{ ...owner, action, target: TARGET, requestId, calls: 1 }]);
          return true;
        });
      } finally {
        // Also after an error: the statement may have had its effect.
        cache.clear();
      }
    },
    clear: cache.clear,
  };
}

function deadlineFromNow(): Deadline {
  return { atMs: performance.now() + TIMEOUT_MS, cancelled: false };
}
