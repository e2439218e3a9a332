import { createOnceward } from "@onceward/client";
import { generateSecret } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { connectAdmin, connectIdentity, connectOperator } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, lookUp, ORDER } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { transportsUnderTest } from "../support/network/transports-under-test.ts";
import { type Claims, type Issuer, makeSigningKey, startIssuer } from "../support/servers/issuer.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";

const database = useDatabase();
let issuer: Issuer;
let server: TestServer;
let tenant: TestTenant;

beforeAll(async () => {
  issuer = await startIssuer();
  // That made-up keys don't flood the issuer is tested beside the source.
  server = await startTestServer(
    database.url,
    { ...issuer.settings, ONCEWARD_LOG_LEVEL: "debug" },
    { jwksCooldownMs: 0 },
  );
  tenant = await createTenant(database);
});

afterAll(async () => {
  await server?.stop();
  await issuer?.close();
});

afterEach(() => {
  issuer.answer = undefined;
});

function callerToken(claims: Claims = {}, signing: Parameters<Issuer["token"]>[1] = {}): Promise<string> {
  return issuer.token({ onceward_tenant: tenant.name, ...claims }, signing);
}

function claimWith(token: string) {
  return connectClient(server, token).claim(ORDER);
}

const INVALID = {
  code: "Unauthenticated",
  reason: "CREDENTIAL_INVALID",
  domain: "onceward",
  message: expect.any(String),
  metadata: {},
  fields: [],
  retryable: false,
};

function secondsFromNow(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds;
}

describe.each(transportsUnderTest())("A token, over %s", (transport) => {
  test("is accepted like an API key of its tenant, which stays valid, too", async () => {
    const own = await createTenant(database);
    const byToken = connectClient(server, await callerToken({ onceward_tenant: own.name }), transport);
    const { fencingToken } = await grant(byToken);
    const byKey = connectClient(server, own.apiKey, transport);
    expect(await lookUp(byKey)).toMatchObject({ fencingToken });
    await byKey.release({ ...ORDER, fencingToken });
  });

  test("that is invalid is refused with the same error as an invalid API key", async () => {
    const token = await callerToken({ aud: "somebody else" });
    const refused = await errorOf(connectClient(server, token, transport).claim(ORDER));
    expect(refused).toEqual(INVALID);
    const apiKey = tenant.apiKey.replace(/.$/, (last) => (last === "A" ? "Q" : "A"));
    expect(await errorOf(connectClient(server, apiKey, transport).claim(ORDER))).toEqual(refused);
  });

  test("gives the access of its role, and no more", async () => {
    const denied = { reason: "ROLE_DENIED" };
    const admin = await callerToken({ onceward_role: "TENANT_ADMIN" });
    const { tenant: seen } = await connectAdmin(server, admin, transport).getTenant({});
    expect(seen?.name).toBe(tenant.name);
    expect(await errorOf(connectClient(server, admin, transport).claim(ORDER))).toMatchObject(denied);
    expect(await errorOf(connectOperator(server, admin, transport).getServerInfo({}))).toMatchObject(denied);

    const caller = await callerToken();
    expect(await errorOf(connectAdmin(server, caller, transport).getTenant({}))).toMatchObject(denied);

    const operator = await issuer.token({ onceward_role: "OPERATOR" });
    expect((await connectOperator(server, operator, transport).getServerInfo({})).version).not.toBe("");
    expect(await errorOf(connectAdmin(server, operator, transport).getTenant({}))).toMatchObject(denied);
  });

  test("that expires after the year 9999 is valid, and its expiry is shown as the end of that year", async () => {
    for (const exp of [253_402_300_800, 1e300]) {
      const { expiresAt } = await connectIdentity(server, await callerToken({ exp }), transport).whoAmI({});
      expect(expiresAt?.seconds).toBe(253_402_300_799n);
    }
  });

  test("without namespaces, or with an empty list, is told apart by WhoAmI", async () => {
    const whoIs = async (claims: Claims) =>
      await connectIdentity(server, await callerToken(claims), transport).whoAmI({});
    expect(await whoIs({})).toMatchObject({ namespaces: [], allNamespaces: true });
    expect(await whoIs({ onceward_namespaces: [] })).toMatchObject({ namespaces: [], allNamespaces: false });
  });

  test("that is limited to namespaces is valid only for those", async () => {
    const own = await createTenant(database);
    const token = await callerToken({ onceward_tenant: own.name, onceward_namespaces: ["charges"] });
    const client = connectClient(server, token, transport);
    await grant(client, { namespace: "charges" });
    expect(await errorOf(client.claim({ ...ORDER, namespace: "mails" }))).toMatchObject({
      reason: "NAMESPACE_DENIED",
    });
  });
});

test("a client gets tokens from its source, and another one when one is refused", async () => {
  const refused = await callerToken({ aud: "somebody else" });
  const token = vi.fn(() => callerToken()).mockResolvedValueOnce(refused);
  await using onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, token });
  const runs = Array.from({ length: 5 }, (_, index) =>
    onceward.run({ namespace: "charges", key: `by-token-${index}` }, () => "charged"),
  );
  expect(await Promise.all(runs)).toEqual(Array(5).fill("charged"));
  expect(token).toHaveBeenCalledTimes(2);
});

describe("a token is refused", () => {
  test.each<[string, () => Claims]>([
    ["of another issuer", () => ({ iss: "https://issuer.example.com" })],
    ["of no issuer", () => ({ iss: undefined })],
    ["for another audience", () => ({ aud: "onceward" })],
    ["for several others", () => ({ aud: ["onceward", "tests"] })],
    ["without an audience", () => ({ aud: undefined })],
    ["that has expired", () => ({ exp: secondsFromNow(-30) })],
    ["that never expires", () => ({ exp: undefined })],
    ["that is not valid yet", () => ({ nbf: secondsFromNow(30) })],
    ["without a subject", () => ({ sub: undefined })],
    ["of no tenant", () => ({ onceward_tenant: undefined })],
    ["of a tenant that does not exist", () => ({ onceward_tenant: "nobody" })],
    ["of a tenant by its id", () => ({ onceward_tenant: String(tenant.id) })],
    ["of a role that does not exist", () => ({ onceward_role: "ROOT" })],
    ["of an operator who belongs to a tenant", () => ({ onceward_role: "OPERATOR" })],
    ["with namespaces that can't be read", () => ({ onceward_namespaces: "charges" })],
  ])("%s", async (_what, claims) => {
    expect(await errorOf(claimWith(await callerToken(claims())))).toEqual(INVALID);
  });

  test("that is not signed", async () => {
    const [, payload] = (await callerToken()).split(".");
    const header = Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url");
    for (const token of [`${header}.${payload}.`, `${header}.${payload}`]) {
      expect(await errorOf(claimWith(token))).toEqual(INVALID);
    }
  });

  test("that is signed with a shared secret, be it the published key", async () => {
    const { kid, publicJwk } = await issuer.rotate();
    const published = [
      JSON.stringify(publicJwk),
      publicJwk.x ?? "",
      Buffer.from(publicJwk.x ?? "", "base64url"),
    ];
    for (const secret of published) {
      const key = Buffer.concat([Buffer.from(secret), Buffer.alloc(32)]);
      expect(await errorOf(claimWith(await callerToken({}, { alg: "HS256", kid, key })))).toEqual(INVALID);
    }
    const key = await generateSecret("HS256");
    expect(await errorOf(claimWith(await callerToken({}, { alg: "HS256", kid, key })))).toEqual(INVALID);
  });

  test("that is signed by an algorithm that is not configured", async () => {
    const signing = await issuer.rotate("ES384");
    expect(await errorOf(claimWith(await callerToken({}, signing)))).toEqual(INVALID);
    await issuer.rotate();
  });

  test("that is signed with a foreign key of the same id, or of another", async () => {
    const { kid } = await issuer.rotate();
    for (const name of [kid, "made-up"]) {
      const theirs = await makeSigningKey("ES256", name);
      expect(await errorOf(claimWith(await callerToken({}, theirs)))).toEqual(INVALID);
    }
  });

  test("whose claims were changed after it was signed", async () => {
    const [header, , signature] = (await callerToken()).split(".");
    const [, payload] = (await callerToken({ onceward_role: "TENANT_ADMIN" })).split(".");
    expect(await errorOf(claimWith(`${header}.${payload}.${signature}`))).toEqual(INVALID);
  });

  test("that is too long", async () => {
    expect(await errorOf(claimWith(await callerToken({ padding: "x".repeat(7000) })))).toEqual(INVALID);
  });

  test("and the log names the failed check, and nothing of the token", async () => {
    const token = await callerToken({ sub: "canary", aud: "canary-audience" });
    await errorOf(claimWith(token));
    const log = JSON.stringify(server.log);
    expect(log).toContain("ERR_JWT_CLAIM_VALIDATION_FAILED aud");
    expect(log).not.toContain("canary");
    expect(log).not.toContain(token.split(".")[2]);
  });
});

describe("a token that was valid", () => {
  test("is refused when it has expired, although it was cached", async () => {
    const token = await callerToken();
    await claimWith(token);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 71_000 });
    try {
      expect(await errorOf(claimWith(token))).toEqual(INVALID);
    } finally {
      vi.useRealTimers();
    }
  });

  test("is refused when its key is withdrawn, although it was cached", async () => {
    const token = await callerToken();
    await claimWith(token);
    await issuer.rotate();
    await claimWith(await callerToken());
    expect(await errorOf(claimWith(token))).toEqual(INVALID);
  });

  test("is denied while its tenant is suspended", async () => {
    const own = await createTenant(database);
    await database.query("update tenants set suspended_at = now() where id = $1", [own.id]);
    const token = await callerToken({ onceward_tenant: own.name });
    expect(await errorOf(claimWith(token))).toMatchObject({ reason: "TENANT_SUSPENDED" });
  });
});

describe("an issuer's keys", () => {
  test("may change at any time: the next token is accepted at once", async () => {
    for (const alg of ["RS256", "PS256", "EdDSA", "ES256"]) {
      await issuer.rotate(alg);
      await claimWith(await callerToken());
    }
  });

  test("are not fetched again while tokens use known keys", async () => {
    await claimWith(await callerToken());
    const { requests } = issuer;
    for (let i = 0; i < 20; i++) await claimWith(await callerToken({ jti: String(i) }));
    expect(issuer.requests).toBe(requests);
  });

  test("stay valid in the issuer's outage, as do API keys; a new key's token is UNAVAILABLE", async () => {
    await claimWith(await callerToken());
    issuer.answer = { status: 503, body: "" };
    await claimWith(await callerToken({ jti: "another" }));
    await claimWith(tenant.apiKey);
    const rotated = await callerToken({}, await makeSigningKey("ES256", "published-later"));
    expect(await errorOf(claimWith(rotated))).toMatchObject({
      code: "Unavailable",
      reason: "ISSUER_UNAVAILABLE",
      retryable: true,
    });
  });

  test("need not be available when a server starts", async () => {
    issuer.answer = { status: 503, body: "" };
    const replica = await startTestServer(database.url, { ...issuer.settings }, { jwksCooldownMs: 0 });
    try {
      const client = connectClient(replica, await callerToken());
      expect(await errorOf(client.claim(ORDER))).toMatchObject({ reason: "ISSUER_UNAVAILABLE" });
      issuer.answer = undefined;
      await client.lookup(ORDER);
    } finally {
      await replica.stop();
    }
  });
});

test("audit events name the bearer of a token by its subject", async () => {
  const token = await callerToken({ sub: "mallory" });
  await errorOf(connectAdmin(server, token).updateTenant({}));
  await expect
    .poll(() => database.query("select action, denial from audit_events where actor = 'mallory'"))
    .toEqual([{ action: "UpdateTenant", denial: "ROLE_DENIED" }]);
});

test("a server without an issuer accepts no tokens", async () => {
  const replica = await startTestServer(database.url);
  try {
    expect(await errorOf(connectClient(replica, await callerToken()).claim(ORDER))).toEqual(INVALID);
    await connectClient(replica, tenant.apiKey).lookup(ORDER);
  } finally {
    await replica.stop();
  }
});
