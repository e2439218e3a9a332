import type { KnownSession, SessionCredential } from "../../access/sessions.ts";
import type { Runner } from "../../database/pool.ts";
import { byteaArray, textArray } from "../../database/sql-arrays.ts";
import type { Role } from "../../domain/tenant.ts";

/** The time after which an unused session ends. */
const IDLE = "interval '30 minutes'";
/** The longest time from sign-in to the end of a session. */
const LIFETIME = "interval '12 hours'";
/** A session in use is touched at most once in this time. */
const TOUCH_EVERY = "interval '1 minute'";
/** Live sessions of one API key or one token's subject. Signing in once more ends the oldest. */
const MAX_SESSIONS = 20;

/** The tenant is looked up for each row: as a join, it would be read whole where statistics are old. */
const LIVE = `s.ends_at > now() and s.last_used_at > now() - ${IDLE}
   and s.installation_id = (select id from installation)
   and (select t.deleted_at from tenants t where t.id = s.tenant_id) is null`;

/** Sessions are loaded because they are used: the statement also stores that. */
const readSessions = {
  name: "read_console_sessions",
  text: `
with touched as (
  update console_sessions
     set last_used_at = now()
   where ctid = any (array (
         select s.ctid
           from console_sessions s
          where s.digest = any ($1::bytea[])
            and s.last_used_at < now() - ${TOUCH_EVERY}
            and ${LIVE}
          order by s.digest
            for update skip locked))
)
select encode(s.digest, 'base64') as digest, s.tenant_id, s.actor, s.key_digest, s.issuer, s.role, s.namespaces,
       extract(epoch from s.ends_at) * 1000 as expires_at_ms,
       (extract(epoch from s.ends_at) - extract(epoch from now())) * 1000 as ends_in_ms
  from console_sessions s
 where s.digest = any ($1::bytea[])
   and ${LIVE}`,
};

interface SessionRow {
  readonly digest: string;
  readonly tenant_id: number | null;
  readonly actor: string;
  readonly key_digest: Buffer | null;
  readonly issuer: string | null;
  readonly role: Role | null;
  readonly namespaces: string[] | null;
  readonly expires_at_ms: number;
  readonly ends_in_ms: number;
}

/**
 * Returns the sessions that are live now, by their digest in base64, and stores that they are in use. Takes digests in base64.
 */
export async function findSessions(
  runner: Runner,
  digests: readonly string[],
): Promise<ReadonlyMap<string, KnownSession>> {
  const askedAtMs = performance.now();
  const rows = await runner.run<SessionRow>(readSessions, [
    byteaArray(digests.map((digest) => Buffer.from(digest, "base64"))),
  ]);
  return new Map(
    rows.map((row) => [
      row.digest,
      {
        tenantId: row.tenant_id ?? undefined,
        credential: credentialOf(row),
        askedAtMs,
        endsAtMs: askedAtMs + row.ends_in_ms,
        expiresAtMs: row.expires_at_ms,
      },
    ]),
  );
}

function credentialOf({ actor, key_digest, issuer, role, namespaces }: SessionRow): SessionCredential {
  if (key_digest !== null) return { kind: "API_KEY", actor, keyDigest: key_digest };
  if (issuer === null || role === null) throw new Error("a session has neither a key nor a token");
  return { kind: "TOKEN", actor, issuer, role, namespaces: namespaces ?? undefined };
}

const lockActor = {
  name: "lock_console_actor",
  text: "select pg_advisory_xact_lock(hashtextextended('onceward console ' || $1::text, 0))",
};

/** Names the rows as `endAllSessions` does. */
const endOldestSessions = {
  name: "end_oldest_console_sessions",
  text: `
delete from console_sessions
 where digest = any (array (
       select s.digest
         from console_sessions s
        where s.actor = $1::text
          and s.issuer is not distinct from $2::text
        order by s.created_at desc, s.digest
       offset $3::int))`,
};

const insertSession = {
  name: "insert_console_session",
  text: `
insert into console_sessions
  (digest, installation_id, tenant_id, actor, key_digest, issuer, role, namespaces, ends_at)
select $1::bytea, i.id, $2::int, $3::text, $4::bytea, $5::text, $6::text, $7::text[], e.ends_at
  from installation i, (select least(now() + ${LIFETIME}, to_timestamp($8::float8 / 1000)) as ends_at) e
 where e.ends_at > now()
returning 1`,
};

/**
 * Stores a session, and ends the oldest ones of the same credential beyond MAX_SESSIONS. Returns false if the credential has
 * expired.
 */
export async function storeSession(
  transaction: Runner,
  session: {
    /** HMAC-SHA256 of the cookie's value under the deployment's pepper. */
    readonly digest: Buffer;
    /** Undefined: an operator's. */
    readonly tenantId: number | undefined;
    readonly credential: SessionCredential;
    /** When the credential expires, in milliseconds since the Unix epoch; undefined: it does not. */
    readonly expiresAtMs: number | undefined;
  },
): Promise<boolean> {
  const { credential } = session;
  const token = credential.kind === "TOKEN" ? credential : undefined;
  // Without the lock, sign-ins at the same time would each keep the others' sessions.
  await transaction.run(lockActor, [credential.actor]);
  await transaction.run(endOldestSessions, [credential.actor, token?.issuer ?? null, MAX_SESSIONS - 1]);
  const inserted = await transaction.run(insertSession, [
    session.digest,
    session.tenantId ?? null,
    credential.actor,
    credential.kind === "API_KEY" ? credential.keyDigest : null,
    token?.issuer ?? null,
    token?.role ?? null,
    token?.namespaces ? textArray(token.namespaces) : null,
    session.expiresAtMs ?? null,
  ]);
  return inserted.length === 1;
}

const ENDED = `
select e.actor, t.id as tenant_id, t.name as tenant
  from ended e
  left join tenants t on t.id = e.tenant_id
 limit 1`;

const endSessionRow = {
  name: "end_console_session",
  text: `
with ended as (delete from console_sessions s where s.digest = $1::bytea and ${LIVE} returning s.actor, s.tenant_id)
${ENDED}`,
};

/**
 * Names the rows by their primary key. By ctid, a row that `readSessions` moves at the same time would stay: Postgres looks at the
 * condition once more after it has waited for a lock.
 */
const endAllSessions = {
  name: "end_console_sessions",
  text: `
with ended as (
  delete from console_sessions
   where digest = any (array (
         select a.digest
           from console_sessions a
          where a.actor = (select s.actor from console_sessions s where s.digest = $1::bytea and ${LIVE})
            and a.issuer is not distinct from (select s.issuer from console_sessions s where s.digest = $1::bytea)))
  returning actor, tenant_id
)
${ENDED}`,
};

/** The sessions that a sign-out ends: the one of a cookie, or all of the same credential. */
export type EndedSessions = "this" | "all";

/** Ends sessions. Returns their owner, an operator without a tenant; undefined if there is no live session with this digest. */
export async function endSessions(transaction: Runner, digest: Buffer, which: EndedSessions) {
  const [row] = await transaction.run<{
    readonly actor: string;
    readonly tenant_id: number | null;
    readonly tenant: string | null;
  }>(which === "this" ? endSessionRow : endAllSessions, [digest]);
  if (row === undefined) return undefined;
  const { actor, tenant_id: id, tenant: name } = row;
  return { actor, tenant: id === null || name === null ? undefined : { id, name } };
}
