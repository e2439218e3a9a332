import { beforeAll, expect, onTestFinished, test } from "vitest";
import { formatApiKey, generateApiKey } from "../../../server/src/access/api-key.ts";
import {
  type BrowserAnswer,
  browse,
  callRpc,
  OF_PAGE,
  postKey,
  reasonOf,
  sessionCookie,
  setCookies,
  signIn,
  whoIs,
} from "../../support/console/browser.ts";
import { openSocket } from "../../support/network/raw-socket.ts";
import type { TestServer } from "../../support/servers/server.ts";
import { createApiKey, createTenant } from "../../support/servers/tenants.ts";
import { startServerOfTest, useServer } from "../../support/servers/use-server.ts";
import { useStarted } from "../../support/use-started.ts";

const { database, server } = useServer();
const tenant = useStarted(() => createTenant(database));
let adminKey: string;

beforeAll(async () => {
  adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
});

const startAnother = (env: Record<string, string>) => startServerOfTest(database.url, env);

/** The id in an API key. */
function idOf(key: string): string {
  return key.slice(3, 19);
}

/** Posts to WhoAmI with exactly these headers: the actor, or the reason of the refusal. */
async function who(to: TestServer, headers: Record<string, string>): Promise<string | undefined> {
  const answer = await browse(to, "/onceward.v1.IdentityService/WhoAmI", {
    method: "POST",
    headers: { "content-type": "application/json", "connect-protocol-version": "1", ...headers },
    body: "{}",
  });
  return answer.status === 200 ? (answer.json as { readonly actor?: string }).actor : reasonOf(answer);
}

test("an API key signs in once, and the session has the key's access and no more", async () => {
  const answer = await postKey(server, adminKey);
  expect([answer.status, answer.body.byteLength, answer.headers["cache-control"]]).toEqual([
    204,
    0,
    "no-store",
  ]);
  expect(setCookies(answer.headers)).toEqual([
    expect.stringMatching(/^onceward-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/),
  ]);
  const cookie = sessionCookie(answer) ?? "";
  expect(await whoIs(server, cookie)).toBe(idOf(adminKey));
  expect((await callRpc(server, "TenantAdminService/GetTenant", { cookie })).json).toMatchObject({
    tenant: { name: tenant.name },
  });
  expect(reasonOf(await callRpc(server, "OperatorService/GetServerInfo", { cookie }))).toBe("ROLE_DENIED");

  const limited = await createApiKey(database, {
    tenantId: tenant.id,
    role: "CALLER",
    namespaces: ["mails"],
  });
  const ofCaller = await signIn(server, limited);
  expect((await callRpc(server, "IdentityService/WhoAmI", { cookie: ofCaller })).json).toMatchObject({
    kind: "KIND_API_KEY",
    role: "ROLE_CALLER",
    namespaces: ["mails"],
  });
  // The console administers: it makes no claims.
  const claim = await callRpc(server, "IdempotencyService/Claim", { cookie: ofCaller }, { key: "a" });
  expect(reasonOf(claim)).toBe("CREDENTIAL_MISSING");

  const stored = await database.query("select s::text as row from console_sessions s");
  expect(JSON.stringify(stored)).not.toContain(cookie.split("=")[1]);
  expect((await database.query("select 1 from audit_events where action = 'SignIn'")).length).toBe(2);
});

test("a cookie counts for a script of the page itself only", async () => {
  const cookie = await signIn(server, adminKey);
  const own = `http://127.0.0.1:${server.httpPort}`;
  const actor = idOf(adminKey);
  const expected: [Record<string, string>, string][] = [
    [{ "sec-fetch-site": "same-origin" }, actor],
    [{ "sec-fetch-site": "same-site" }, "CREDENTIAL_MISSING"],
    [{ "sec-fetch-site": "cross-site" }, "CREDENTIAL_MISSING"],
    [{ "sec-fetch-site": "none" }, "CREDENTIAL_MISSING"],
    [{ "sec-fetch-site": "" }, "CREDENTIAL_MISSING"],
    // Browsers that know the header send it to trustworthy addresses; it decides.
    [{ "sec-fetch-site": "cross-site", origin: own }, "CREDENTIAL_MISSING"],
    [{ origin: own }, actor],
    [{ origin: own.replace("http", "https") }, "CREDENTIAL_MISSING"],
    [{ origin: "http://127.0.0.1:1" }, "CREDENTIAL_MISSING"],
    [{ origin: "http://evil.example" }, "CREDENTIAL_MISSING"],
    [{ origin: "null" }, "CREDENTIAL_MISSING"],
    [{}, "CREDENTIAL_MISSING"],
    [{ ...OF_PAGE, "connect-protocol-version": "" }, "CREDENTIAL_MISSING"],
    // An Authorization header wins, even one that is not valid.
    [{ ...OF_PAGE, authorization: `Bearer ${tenant.apiKey}` }, idOf(tenant.apiKey)],
    [{ ...OF_PAGE, authorization: "Bearer nothing" }, "CREDENTIAL_INVALID"],
    [{ ...OF_PAGE, authorization: "" }, "CREDENTIAL_INVALID"],
    [{ ...OF_PAGE, cookie: `a=b; ${cookie} ; c=d` }, actor],
    [{ ...OF_PAGE, cookie: `x${cookie}` }, "CREDENTIAL_MISSING"],
    [{ ...OF_PAGE, cookie: `${cookie.slice(0, -2)}-_` }, "CREDENTIAL_INVALID"],
    [{ ...OF_PAGE, cookie: "onceward-session=" }, "CREDENTIAL_INVALID"],
    [{ ...OF_PAGE, cookie: "onceward-session=%00'" }, "CREDENTIAL_INVALID"],
  ];
  for (const [headers, result] of expected) {
    expect([headers, await who(server, { cookie, ...headers })]).toEqual([headers, result]);
  }

  const path = "/onceward.v1.IdentityService/WhoAmI?connect=v1&encoding=json&message=%7B%7D";
  const headers = { cookie, ...OF_PAGE, "connect-protocol-version": "1" };
  expect(reasonOf(await browse(server, path, { headers }))).toBe("CREDENTIAL_MISSING");
  const overGrpcWeb = await browse(server, "/onceward.v1.IdentityService/WhoAmI", {
    method: "POST",
    headers: { ...headers, "content-type": "application/grpc-web+proto" },
    body: "\0\0\0\0\0",
  });
  expect(overGrpcWeb.body.toString("latin1") + JSON.stringify(overGrpcWeb.headers)).toMatch(
    /grpc-status\W+16/,
  );
});

test("calls without a header or a page's cookie stay anonymous where that is allowed", async () => {
  const open = await startAnother({ ONCEWARD_ANONYMOUS_TENANT: "anybody" });
  const cookie = await signIn(open, adminKey);
  expect(await who(open, OF_PAGE)).toBe("anonymous");
  expect(await who(open, { ...OF_PAGE, cookie })).toBe(idOf(adminKey));
  expect(await who(open, { cookie, "sec-fetch-site": "cross-site" })).toBe("anonymous");
});

test("signing in and out is for the page itself only, too", async () => {
  const cookie = await signIn(server, adminKey);
  for (const headers of [
    { "sec-fetch-site": "cross-site" },
    { origin: "http://evil.example" },
    {},
  ] as const) {
    const answer = await postKey(server, adminKey, headers as Record<string, string>);
    expect([answer.status, reasonOf(answer), setCookies(answer.headers)]).toEqual([
      400,
      "INVALID_REQUEST",
      [],
    ]);
    for (const path of ["/console/api/session", "/console/api/sessions"]) {
      const out = await browse(server, path, { method: "DELETE", headers: { cookie, ...headers } });
      expect([out.status, setCookies(out.headers)]).toEqual([400, []]);
    }
  }
  const asForm = { ...OF_PAGE, "content-type": "text/plain" };
  expect(reasonOf(await postKey(server, adminKey, asForm))).toBe("INVALID_REQUEST");
  expect(await whoIs(server, cookie)).toBe(idOf(adminKey));
});

test("behind a balancer that ends TLS, the cookie is the host's own and travels by https only", async () => {
  const behind = await startAnother({
    ONCEWARD_CONSOLE_ORIGIN: "https://onceward.example",
    ONCEWARD_HOST: "0.0.0.0",
  });
  const answer = await postKey(behind, adminKey, { origin: "https://onceward.example" });
  expect(setCookies(answer.headers)).toEqual([
    expect.stringMatching(/^__Host-onceward-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/),
  ]);
  const cookie = sessionCookie(answer) ?? "";
  expect(await who(behind, { cookie, origin: "https://onceward.example" })).toBe(idOf(adminKey));
  expect(await who(behind, { cookie, origin: `http://127.0.0.1:${behind.httpPort}` })).toBe(
    "CREDENTIAL_MISSING",
  );
  const plain = cookie.replace("__Host-", "");
  expect(await who(behind, { cookie: plain, origin: "https://onceward.example" })).toBe("CREDENTIAL_MISSING");
});

test("a container's page with a loopback address has a cookie that browsers keep without TLS", async () => {
  const origin = "http://localhost:8080";
  const behind = await startAnother({ ONCEWARD_CONSOLE_ORIGIN: origin, ONCEWARD_HOST: "0.0.0.0" });
  const answer = await postKey(behind, adminKey, { origin });
  expect(setCookies(answer.headers)).toEqual([
    expect.stringMatching(/^onceward-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/),
  ]);
});

test("without TLS, a sign-in is refused on an address that other machines can reach", async () => {
  const cookie = await signIn(server, adminKey);
  const open = await startAnother({ ONCEWARD_HOST: "0.0.0.0" });
  const answer = await postKey(open, adminKey);
  expect([answer.status, reasonOf(answer)]).toEqual([400, "INVALID_REQUEST"]);
  expect((answer.json as { message: string }).message).toContain("ONCEWARD_CONSOLE_ORIGIN");
  expect(await who(open, { cookie, ...OF_PAGE })).toBe("CREDENTIAL_MISSING");
});

test("failed sign-ins give no reason, are rate-limited, and do not lock out a valid key", async () => {
  const own = await startAnother({});
  const unknown = formatApiKey(generateApiKey());
  const wrong = adminKey.replace(/.$/, (last) => (last === "A" ? "Q" : "A"));
  // Those that succeed are not counted.
  for (let i = 0; i < 25; i++) await signIn(own, adminKey);
  const cookie = await signIn(own, adminKey);
  const refusals = new Set<string>();
  const refusalOf = async (key: string) => {
    const answer = await postKey(own, key);
    expect([answer.status, reasonOf(answer)]).toEqual([401, "CREDENTIAL_INVALID"]);
    return (answer.json as { message: string }).message;
  };
  for (const key of [unknown, wrong, ...Array<string>(16).fill(unknown)]) refusals.add(await refusalOf(key));
  expect(refusals.size).toBe(1);
  for (const key of ["", "ow_"]) refusals.add(await refusalOf(key));
  expect(refusals.size).toBe(3);
  const answer: BrowserAnswer = await postKey(own, wrong);
  expect([answer.status, reasonOf(answer)]).toEqual([429, "QUOTA_RATE"]);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  expect(JSON.stringify(answer.json)).toContain("google.rpc.RetryInfo");
  // Somebody else behind the same address.
  expect(await whoIs(own, await signIn(own, adminKey))).toBe(idOf(adminKey));
  // Calls and signing out are not affected.
  const out = { method: "DELETE", headers: { ...OF_PAGE, cookie } };
  expect((await browse(own, "/console/api/session", out)).status).toBe(204);
  expect(await who(own, { authorization: `Bearer ${adminKey}` })).toBe(idOf(adminKey));
});

test("bodies that never arrive keep no one from signing in", async () => {
  const head = "POST /console/api/session HTTP/1.1\r\nhost: a\r\nsec-fetch-site: same-origin\r\n";
  const begun = `${head}content-type: application/json\r\ncontent-length: 100\r\n\r\n{`;
  const sockets = await Promise.all(Array.from({ length: 40 }, () => openSocket(server.httpPort)));
  onTestFinished(() => sockets.forEach(({ socket }) => void socket.destroy()));
  for (const { send } of sockets) await send(begun);
  expect(await whoIs(server, await signIn(server, adminKey))).toBe(idOf(adminKey));
});

test("a sign-in whose body is not a small JSON object with a key is refused with the field", async () => {
  for (const [field, body] of [
    ...["", "{", "[]", "null", "{}", '{"apiKey":1}'].map((wrong) => ["apiKey", wrong] as const),
    ["apikey", '{"apikey":"ow_"}'],
    ["tenant", `{"apiKey":"${adminKey}","tenant":"globex"}`],
    ["body", `{"apiKey":"${"x".repeat(1024)}"}`],
  ] as const) {
    const headers = { "content-type": "application/json", ...OF_PAGE };
    const answer = await browse(server, "/console/api/session", { method: "POST", headers, body });
    expect([answer.status, reasonOf(answer)]).toEqual([400, "INVALID_REQUEST"]);
    expect((answer.json as { message: string }).message).toMatch(new RegExp(`^${field} `));
  }
});
