import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import type { Addresses } from "../../../server/src/replica/server.ts";
import {
  type BrowserAnswer,
  browse,
  callRpc,
  sessionCookie,
  setCookies,
  whoIs,
} from "../../support/console/browser.ts";
import { useDatabase } from "../../support/database/use-database.ts";
import { startOidcIssuer } from "../../support/oidc/issuer.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { startServerOfTest, useServerOn } from "../../support/servers/use-server.ts";
import { useStarted } from "../../support/use-started.ts";

type Port = Pick<Addresses, "httpPort">;

/** A sign-in that has been sent to the issuer. */
interface BegunSignIn {
  /** The issuer's address. */
  readonly location: string;
  /** The `Cookie` header of the sign-in. */
  readonly cookie: string;
  /** The cookie's attributes, such as `HttpOnly`. */
  readonly attributes: readonly string[];
}

/** Begins a sign-in at the issuer. */
async function beginSignIn(server: Port, returnPath = "/console/"): Promise<BegunSignIn> {
  const query = new URLSearchParams({ return: returnPath });
  const { status, headers } = await browse(server, `/console/api/oidc/start?${query}`);
  const [cookie, ...attributes] = (setCookies(headers)[0] ?? "").split("; ");
  if (status !== 302 || !cookie) throw new Error(`the sign-in has not begun: ${status} ${headers.location}`);
  return { location: String(headers.location), cookie, attributes };
}

/** Visits the issuer, which sends the browser back; returns the path and query to which it does. */
async function visitIssuer({ location }: Pick<BegunSignIn, "location">): Promise<string> {
  const answer = await fetch(location, { redirect: "manual" });
  const back = answer.headers.get("location");
  if (back === null) throw new Error(`the issuer answered with ${answer.status}: ${await answer.text()}`);
  const { pathname, search } = new URL(back);
  return `${pathname}${search}`;
}

/** Signs in at the issuer: begins on one replica, and ends on another or the same. Returns the last answer. */
async function signInAtIssuer(
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

const MINUTE_MS = 60_000;

const database = useDatabase();
const issuer = useStarted(startOidcIssuer, (started) => started.close());
const ofIssuer = () => issuer.settings;
const server = useServerOn(database, ofIssuer, { jwksCooldownMs: 0 });
const other = useServerOn(database, ofIssuer, { jwksCooldownMs: 0 });
const tenant = useStarted(() => createTenant(database));

afterEach(() => {
  issuer.answer = undefined;
  issuer.person = {};
});

/** The reason with which the browser returns to the sign-in page; undefined: it is signed in. */
function failureOf({ headers }: BrowserAnswer): string | undefined {
  const { pathname, searchParams } = new URL(String(headers.location), "http://here");
  return pathname === "/console/sign-in" ? (searchParams.get("error") ?? undefined) : undefined;
}

test("a person's sign-in at the issuer may begin and end on different replicas", async () => {
  expect((await browse(server, "/console/api/sign-in-options")).json).toEqual({
    oidc: true,
    issuer: issuer.url,
  });
  issuer.person = { sub: "ann@example", onceward_tenant: tenant.name, onceward_role: "TENANT_ADMIN" };
  const answer = await signInAtIssuer(server, {
    endsOn: other,
    returnPath: "/console/records?state=COMPLETED#a",
  });
  expect([answer.status, answer.headers.location]).toEqual([302, "/console/records?state=COMPLETED#a"]);
  const cookie = sessionCookie(answer) ?? "";
  expect(setCookies(answer.headers)).toEqual([
    expect.stringMatching(/^onceward-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/),
    "onceward-sign-in=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0",
  ]);
  expect((await callRpc(server, "IdentityService/WhoAmI", { cookie })).json).toMatchObject({
    kind: "KIND_TOKEN",
    actor: "ann@example",
    role: "ROLE_TENANT_ADMIN",
    tenant: tenant.name,
  });
  // The session ends with the token, five minutes after it was issued.
  const [row] = await database.query<{ left: number }>(
    "select date_part('epoch', ends_at - now())::float8 as left from console_sessions where actor = 'ann@example'",
  );
  expect(row?.left).toBeLessThanOrEqual(300);

  issuer.person = { onceward_role: "OPERATOR" };
  const operator = sessionCookie(await signInAtIssuer(server)) ?? "";
  expect((await callRpc(server, "OperatorService/GetServerInfo", { cookie: operator })).status).toBe(200);
});

test("a sign-in that has begun can be ended for ten minutes, and no longer", async () => {
  issuer.person = { onceward_tenant: tenant.name };
  onTestFinished(() => void vi.useRealTimers());
  for (const [laterMs, failure] of [
    [9.5 * MINUTE_MS, undefined],
    [10.5 * MINUTE_MS, "SIGN_IN_EXPIRED"],
  ] as const) {
    vi.useRealTimers();
    const begun = await beginSignIn(server);
    expect(begun.attributes).toContain("Max-Age=600");
    const path = await visitIssuer(begun);
    // Servers and issuer are in this process: all see the later date.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + laterMs });
    const host = { host: `127.0.0.1:${server.httpPort}` };
    const ended = await browse(server, path, { headers: { cookie: begun.cookie, ...host } });
    expect(failureOf(ended)).toBe(failure);
  }
});

test("an issuer's answer counts once, with the cookie of the browser that began, and its state", async () => {
  issuer.person = { onceward_tenant: tenant.name };
  const begun = await beginSignIn(server);
  const path = await visitIssuer(begun);
  const calls = issuer.requests.length;
  expect(failureOf(await browse(server, path))).toBe("SIGN_IN_EXPIRED");
  expect(failureOf(await browse(server, path, { headers: { cookie: `${begun.cookie}x` } }))).toBe(
    "SIGN_IN_EXPIRED",
  );
  const elsewhere = await beginSignIn(server);
  const withOther = await browse(server, path, { headers: { cookie: elsewhere.cookie } });
  expect(failureOf(withOther)).toBe("CREDENTIAL_INVALID");
  const denied = path.replace(/code=\w+/, "error=access_denied");
  expect(failureOf(await browse(server, denied, { headers: { cookie: begun.cookie } }))).toBe(
    "CREDENTIAL_INVALID",
  );
  // None of these asked the issuer for a token.
  expect(issuer.requests.slice(calls)).toEqual([]);

  const host = { host: `127.0.0.1:${server.httpPort}` };
  const first = await browse(server, path, { headers: { cookie: begun.cookie, ...host } });
  expect([failureOf(first), await whoIs(server, sessionCookie(first) ?? "")]).toEqual([
    undefined,
    "somebody",
  ]);
  const again = await browse(server, path, { headers: { cookie: begun.cookie, ...host } });
  expect([failureOf(again), sessionCookie(again)]).toEqual(["CREDENTIAL_INVALID", undefined]);
});

test.each<[string, () => Record<string, unknown>]>([
  ["of no tenant", () => ({})],
  ["of a tenant that does not exist", () => ({ onceward_tenant: "nobody" })],
  ["of an operator who has a tenant", () => ({ onceward_tenant: tenant.name, onceward_role: "OPERATOR" })],
  ["with another role", () => ({ onceward_tenant: tenant.name, onceward_role: "ROOT" })],
  ["with another nonce", () => ({ onceward_tenant: tenant.name, nonce: "another" })],
  ["for another client", () => ({ onceward_tenant: tenant.name, aud: "another" })],
  ["whose authorized party is another client", () => ({ onceward_tenant: tenant.name, azp: "another" })],
  ["of another issuer", () => ({ onceward_tenant: tenant.name, iss: "https://another.example" })],
  ["that has expired", () => ({ onceward_tenant: tenant.name, exp: Math.floor(Date.now() / 1000) - 60 })],
])("an ID token %s signs no one in", async (_, claims) => {
  issuer.person = claims();
  const answer = await signInAtIssuer(server);
  expect([failureOf(answer), sessionCookie(answer)]).toEqual(["CREDENTIAL_INVALID", undefined]);
});

test("an issuer without an answer, or with a long one, is unavailable; people can retry", async () => {
  const own = await startServerOfTest(database.url, issuer.settings, { jwksCooldownMs: 0 });
  issuer.person = { onceward_tenant: tenant.name };
  const huge = {
    status: 200,
    headers: { "content-type": "application/json" },
    body: `"${"x".repeat(300_000)}"`,
  };
  const elsewhere = { status: 302, headers: { location: `${issuer.url}/keys` } };
  for (const forced of [{ status: 0 }, { status: 503 }, elsewhere, huge]) {
    issuer.answer = (path) => (path.startsWith("/.well-known") ? forced : undefined);
    expect(failureOf(await browse(own, "/console/api/oidc/start"))).toBe("ISSUER_UNAVAILABLE");
  }
  for (const forced of [{ status: 0 }, { status: 503 }, huge]) {
    issuer.answer = (path) => (path === "/token" ? forced : undefined);
    expect(failureOf(await signInAtIssuer(own))).toBe("ISSUER_UNAVAILABLE");
  }
  issuer.answer = undefined;
  expect(failureOf(await signInAtIssuer(own))).toBeUndefined();
});

test("no link leads through the sign-in to another site", async () => {
  issuer.person = { onceward_tenant: tenant.name };
  for (const path of [
    "//evil.example",
    "/\\evil.example",
    "https://evil.example/console/",
    "/console/..//evil.example",
  ]) {
    expect((await signInAtIssuer(server, { returnPath: path })).headers.location).toBe("/console/");
  }
});

test("a suspended tenant's person is told so, and a session ends when the tenant is suspended", async () => {
  const own = await createTenant(database);
  issuer.person = { onceward_tenant: own.name };
  const young = await startServerOfTest(database.url, issuer.settings, { credentialAgeMs: 0 });
  const cookie = sessionCookie(await signInAtIssuer(young)) ?? "";
  expect(await whoIs(young, cookie)).toBe("somebody");
  await database.query("update tenants set suspended_at = now() where id = $1", [own.id]);
  expect(await whoIs(young, cookie)).toBe("TENANT_SUSPENDED");
  expect(failureOf(await signInAtIssuer(young))).toBe("TENANT_SUSPENDED");
});
