import { expect, test } from "vitest";
import { formatApiKey, generateApiKey } from "../../../server/src/access/api-key.ts";
import { connectAdmin } from "../../support/calls/admin.ts";
import {
  browse,
  OF_PAGE,
  postKey,
  reasonOf,
  setCookies,
  signIn,
  whoIs,
} from "../../support/console/browser.ts";
import { openConnection, untilBlocked } from "../../support/database/connections.ts";
import { createCopiedDatabase } from "../../support/database/restores.ts";
import { useDatabase } from "../../support/database/use-database.ts";
import { createApiKey, createTenant } from "../../support/servers/tenants.ts";
import { startServerOfTest, useServerOn } from "../../support/servers/use-server.ts";

const database = useDatabase();
const server = useServerOn(database, {}, { credentialAgeMs: 0 });
/** Another replica, whose cached rows are used for a shorter time than in production. */
const other = useServerOn(database, {}, { credentialAgeMs: 200 });

/** Signs in as an administrator of a new tenant, on one replica; both replicas know the session. */
async function newSession() {
  const { id: tenantId } = await createTenant(database);
  const key = await createApiKey(database, { tenantId, role: "TENANT_ADMIN" });
  const keyId = key.slice(3, 19);
  const cookie = await signIn(server, key);
  expect([await whoIs(server, cookie), await whoIs(other, cookie)]).toEqual([keyId, keyId]);
  return { tenantId, key, keyId, cookie };
}

/** Expects that both replicas refuse a session. */
async function expectEnded(cookie: string, reason = "CREDENTIAL_INVALID"): Promise<void> {
  await expect.poll(() => whoIs(other, cookie)).toBe(reason);
  expect(await whoIs(server, cookie)).toBe(reason);
}

function signOut(cookie: string, path = "/console/api/session") {
  return browse(other, path, { method: "DELETE", headers: { ...OF_PAGE, cookie } });
}

test.each([
  ["its key is revoked", "update api_keys set revoked_at = now() where id = $2"],
  ["its key has expired", "update api_keys set expires_at = now() where id = $2"],
  ["its key has another secret", "update api_keys set digest = sha256('another') where id = $2"],
  ["its tenant is suspended", "update tenants set suspended_at = now() where id = $1"],
  ["its tenant is deleted", "update tenants set deleted_at = now() where id = $1"],
  [
    "no one has used it for half an hour",
    "update console_sessions set last_used_at = now() - interval '30 minutes' where actor = $2",
  ],
  ["twelve hours have passed", "update console_sessions set ends_at = now() where actor = $2"],
])("a session ends on every replica when %s", async (why, change) => {
  const { tenantId, keyId, cookie } = await newSession();
  await database.query(change.replace("$2", "$1"), [change.includes("$1") ? tenantId : keyId]);
  await expectEnded(cookie, why.includes("suspended") ? "TENANT_SUSPENDED" : "CREDENTIAL_INVALID");
});

test("a sign-out and a revoked key end sessions at once on the replica that was asked", async () => {
  const { key, keyId, cookie } = await newSession();
  const own = await startServerOfTest(database.url);
  const left = await signIn(own, key);
  expect([await whoIs(own, left), await whoIs(own, cookie)]).toEqual([keyId, keyId]);
  await browse(own, "/console/api/session", { method: "DELETE", headers: { ...OF_PAGE, cookie: left } });
  expect([await whoIs(own, left), await whoIs(own, cookie)]).toEqual(["CREDENTIAL_INVALID", keyId]);
  await connectAdmin(own, key).revokeApiKey({ id: keyId });
  expect(await whoIs(own, cookie)).toBe("CREDENTIAL_INVALID");
});

test("signing out ends one session, or all of the same key, on every replica", async () => {
  const { key, keyId, cookie } = await newSession();
  const [second, third] = [await signIn(server, key), await signIn(other, key)];
  const elsewhere = await newSession();
  const answer = await signOut(cookie);
  expect([answer.status, setCookies(answer.headers)]).toEqual([
    204,
    ["onceward-session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"],
  ]);
  await expectEnded(cookie);
  expect(await whoIs(server, second)).toBe(keyId);
  // Once more, there is nothing to end; and an ended session names no others.
  expect((await signOut(cookie)).status).toBe(204);
  expect(reasonOf(await signOut(cookie, "/console/api/sessions"))).toBe("CREDENTIAL_INVALID");

  expect((await signOut(second, "/console/api/sessions")).status).toBe(204);
  await Promise.all([expectEnded(second), expectEnded(third)]);
  expect(await whoIs(server, elsewhere.cookie)).toBe(elsewhere.keyId);
  expect(await whoIs(server, await signIn(server, key))).toBe(keyId);
  const events = await database.query<{ action: string }>(
    "select action from audit_events where actor = $1 order by id",
    [keyId],
  );
  const signIns = ["SignIn", "SignIn", "SignIn"];
  expect(events.map(({ action }) => action)).toEqual([...signIns, "SignOut", "SignOutEverywhere", "SignIn"]);
});

test("signing out everywhere also ends sessions that are used at this moment", async () => {
  const { key, keyId, cookie } = await newSession();
  const left = await signIn(server, key);
  const use = await openConnection(database);
  await use.query("begin");
  await use.query("update console_sessions set last_used_at = now() where actor = $1", [keyId]);
  const answer = signOut(cookie, "/console/api/sessions");
  await untilBlocked(database);
  await use.query("commit");
  expect((await answer).status).toBe(204);
  await Promise.all([expectEnded(cookie), expectEnded(left)]);
});

test("a browser that signs in again leaves its earlier session", async () => {
  const { key, keyId, cookie } = await newSession();
  const answer = await postKey(server, key, { ...OF_PAGE, cookie });
  expect(answer.status).toBe(204);
  await expectEnded(cookie);
  const rows = await database.query("select 1 from console_sessions where actor = $1", [keyId]);
  expect(rows).toHaveLength(1);
});

test("a session in use lasts, and never longer than its key", async () => {
  const { tenantId, keyId, cookie } = await newSession();
  await database.query(
    "update console_sessions set last_used_at = now() - interval '29 minutes' where actor = $1",
    [keyId],
  );
  expect(await whoIs(server, cookie)).toBe(keyId);
  const [used] = await database.query(
    "select 1 from console_sessions where actor = $1 and last_used_at > now() - interval '1 minute'",
    [keyId],
  );
  expect(used).toBeDefined();

  const shortLived = await createApiKey(database, { tenantId, role: "TENANT_ADMIN" });
  const id = shortLived.slice(3, 19);
  await database.query("update api_keys set expires_at = now() + interval '1 hour' where id = $1", [id]);
  await signIn(server, shortLived);
  const lasts = await database.query<{ actor: string; hours: number }>(
    `select actor, round(date_part('epoch', ends_at - now()) / 3600)::int as hours
       from console_sessions where actor in ($1, $2) order by hours`,
    [id, keyId],
  );
  expect(lasts).toEqual([
    { actor: id, hours: 1 },
    { actor: keyId, hours: 12 },
  ]);
});

test("a key has a bounded number of sessions: the oldest end, even if all sign in at once", async () => {
  const { key, keyId, cookie } = await newSession();
  await Promise.all(Array.from({ length: 25 }, (_, i) => signIn(i % 2 === 0 ? server : other, key)));
  const rows = await database.query("select 1 from console_sessions where actor = $1", [keyId]);
  expect(rows).toHaveLength(20);
  await expectEnded(cookie);
});

test("a key that signs in all the time keeps no connection from calls, and is refused in the end", async () => {
  const { key, keyId } = await newSession();
  const own = await startServerOfTest(database.url, { ONCEWARD_POOL_SIZE: "4" });
  const holder = await openConnection(database);
  await holder.query("begin");
  await holder.query("select pg_advisory_xact_lock(hashtextextended('onceward console ' || $1, 0))", [keyId]);
  const signIns = Array.from({ length: 20 }, () => signIn(own, key));
  await untilBlocked(database);
  const elsewhere = await newSession();
  expect(await whoIs(own, elsewhere.cookie)).toBe(elsewhere.keyId);
  await holder.query("commit");
  await Promise.all(signIns);
  // 100 at once, and one more every 2 s, which a slow machine gets, too.
  let answer = await postKey(own, key);
  for (let made = 21; made < 200 && answer.status === 204; made++) answer = await postKey(own, key);
  expect([answer.status, reasonOf(answer)]).toEqual([429, "QUOTA_RATE"]);
  expect(await whoIs(own, await signIn(own, elsewhere.key))).toBe(elsewhere.keyId);
});

test("the environment's operator key signs in; its replacement ends its sessions", async () => {
  const key = generateApiKey();
  const start = async (secret: string) => {
    const operatorKey = formatApiKey({ id: key.id, secret });
    return await startServerOfTest(database.url, { ONCEWARD_OPERATOR_KEY: operatorKey });
  };
  const first = await start(key.secret);
  const cookie = await signIn(first, formatApiKey(key));
  expect(await whoIs(first, cookie)).toBe(key.id);
  // A replica without the key, and one with another secret for it.
  expect(await whoIs(server, cookie)).toBe("CREDENTIAL_INVALID");
  expect(await whoIs(await start(generateApiKey().secret), cookie)).toBe("CREDENTIAL_INVALID");
});

test("a session that was ended before a restore stays ended after it", async () => {
  const restorable = await createCopiedDatabase();
  const replica = await startServerOfTest(restorable.url);
  const { id: tenantId } = await createTenant(restorable);
  const key = await createApiKey(restorable, { tenantId, role: "TENANT_ADMIN" });
  const cookie = await signIn(replica, key);
  await restorable.dump();
  await browse(replica, "/console/api/session", { method: "DELETE", headers: { ...OF_PAGE, cookie } });
  // The replica itself is not asked before the restore: it would remember for a second that there is no such session.
  expect(await restorable.query("select 1 from console_sessions")).toEqual([]);

  await restorable.restore();
  const seen = new Set<string | undefined>();
  await expect
    .poll(async () => {
      const answer = await whoIs(replica, cookie);
      seen.add(answer);
      return answer;
    })
    .toBe("CREDENTIAL_INVALID");
  expect(seen).not.toContain(key.slice(3, 19));
  expect(await whoIs(replica, await signIn(replica, key))).toBe(key.slice(3, 19));
});
