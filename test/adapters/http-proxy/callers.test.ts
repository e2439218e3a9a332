import { once } from "node:events";
import type { RequestListener } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { createOnceward } from "@onceward/client";
import { parseConfig, startProxy } from "@onceward/http-proxy";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type Certificate, makeCertificate } from "../../support/network/certificates.ts";
import { startIssuer } from "../../support/servers/issuer.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { startWorld } from "./proxied-world.ts";

/** Where the proxy finds a request's caller, besides a header. */

const world = useServer();
const charge: RequestListener = (req, res) => {
  req.resume().on("end", () => res.writeHead(201).end("charged"));
};

test("the caller is a claim of a verified token; an invalid token calls nothing", async () => {
  const issuer = await startIssuer();
  onTestFinished(() => issuer.close());
  await issuer.rotate();
  const {
    ONCEWARD_JWT_ISSUER: iss,
    ONCEWARD_JWT_AUDIENCE: aud,
    ONCEWARD_JWT_JWKS_URL: jwksUrl,
  } = issuer.settings;
  const jwt = JSON.stringify({ claim: "account", jwksUrl, issuer: iss, audience: aud });
  const effect = vi.fn(charge);
  const { charge: post, records } = await startWorld(world, effect, {
    routes: `routes: [{ path: /charges, namespace: charges, caller: { jwt: ${jwt} } }]`,
  });
  const as = async (authorization: string) => await post({ path: "/charges", headers: { authorization } });
  const bearer = async (...args: Parameters<typeof issuer.token>) => `Bearer ${await issuer.token(...args)}`;
  expect((await as(await bearer({ account: "one" }))).status).toBe(201);
  // Another token of the same caller.
  expect((await as(await bearer({ account: "one", jti: "2" }))).headers["idempotency-replayed"]).toBe("true");
  expect((await as(await bearer({ account: "two" }))).headers["idempotency-replayed"]).toBeUndefined();
  expect(effect).toHaveBeenCalledTimes(2);

  const past = Math.floor(Date.now() / 1000) - 3600;
  const unsigned = [{ alg: "none" }, { iss, aud, account: "one", exp: past + 7200 }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  const refused = [
    `Bearer ${unsigned}.`,
    await bearer({ account: "one", exp: past }),
    await bearer({ account: "one", iss: "https://other.example" }),
    await bearer({ account: "one", aud: "other" }),
    await bearer({ account: 1 }),
    await bearer({}),
    await bearer({ account: "" }),
    await bearer({ account: "one", exp: undefined }),
    `Basic ${await issuer.token({ account: "one" })}`,
  ];
  for (const authorization of refused) expect((await as(authorization)).status).toBe(401);
  expect(effect).toHaveBeenCalledTimes(2);
  expect(await records()).toHaveLength(2);
});

const partOf = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const tokenOf = (claims: object) => `${partOf({ alg: "none" })}.${partOf(claims)}.signature`;

test("the caller of a gateway's token is its claim: a renewed token is the same caller", async () => {
  const effect = vi.fn(charge);
  const caller = "{ jwt: { claim: account, header: x-token, verifiedBy: gateway } }";
  const { charge: post } = await startWorld(world, effect, {
    routes: `routes: [{ path: /charges, namespace: charges, caller: ${caller} }]`,
  });
  const as = async (token: string) => {
    const { status, headers } = await post({ path: "/charges", headers: { "x-token": token } });
    return [status, headers["idempotency-replayed"]];
  };
  expect(await as(`Bearer ${tokenOf({ iss: "a", account: "one", exp: 1 })}`)).toEqual([201, undefined]);
  expect(await as(tokenOf({ iss: "a", account: "one", exp: 2, jti: "2" }))).toEqual([201, "true"]);
  expect(await as(tokenOf({ iss: "b", account: "one" }))).toEqual([201, undefined]);
  expect(await as(tokenOf({ iss: "a", account: "two" }))).toEqual([201, undefined]);
  for (const token of ["one", "a.b.c", tokenOf({ account: 1 }), tokenOf({ sub: "one" }), tokenOf([])])
    expect(await as(token)).toEqual([401, undefined]);
  expect(effect).toHaveBeenCalledTimes(3);
});

test("an API key is the same caller with any scheme and any spaces", async () => {
  const effect = vi.fn(charge);
  const { charge: post } = await startWorld(world, effect);
  const as = async (authorization: string) => (await post({ headers: { authorization } })).status;
  for (const authorization of ["Bearer key", "bearer   key ", "Token key", "key"])
    expect(await as(authorization)).toBe(201);
  expect(effect).toHaveBeenCalledOnce();
  expect(await as('Digest username="a", nonce="b"')).toBe(400);
  expect(await as("Bearer other")).toBe(201);
  expect(effect).toHaveBeenCalledTimes(2);
});

test("a token that a shared secret signed is not valid, even if the issuer publishes the secret", async () => {
  const issuer = await startIssuer();
  onTestFinished(() => issuer.close());
  const key = Buffer.alloc(32, "secret");
  const { kid } = await issuer.rotate();
  const secret = { kty: "oct", kid, k: key.toString("base64url"), alg: "HS256" };
  issuer.answer = { status: 200, body: JSON.stringify({ keys: [secret] }) };
  const { ONCEWARD_JWT_ISSUER: iss, ONCEWARD_JWT_JWKS_URL: jwksUrl } = issuer.settings;
  const effect = vi.fn(charge);
  const { charge: post } = await startWorld(world, effect, {
    routes: `routes: [{ path: /charges, namespace: charges, caller: { jwt: ${JSON.stringify({ jwksUrl, issuer: iss })} } }]`,
  });
  const authorization = `Bearer ${await issuer.token({}, { alg: "HS256", key })}`;
  expect((await post({ path: "/charges", headers: { authorization } })).status).toBe(401);
  expect(effect).not.toHaveBeenCalled();
});

test("while the issuer's keys are unavailable, a request is refused with 503", async () => {
  const issuer = await startIssuer();
  onTestFinished(() => issuer.close());
  await issuer.rotate();
  const { ONCEWARD_JWT_ISSUER: iss, ONCEWARD_JWT_JWKS_URL: jwksUrl } = issuer.settings;
  const { charge: post } = await startWorld(world, charge, {
    routes: `routes: [{ path: /charges, namespace: charges, caller: { jwt: ${JSON.stringify({ jwksUrl, issuer: iss })} } }]`,
  });
  const authorization = `Bearer ${await issuer.token({ sub: "one" })}`;
  const keys = { keys: [], padding: "x".repeat(256 * 1024) };
  for (const answer of [
    { status: 500, body: '{"keys":[]}' },
    { status: 200, body: JSON.stringify(keys) },
  ]) {
    issuer.answer = answer;
    expect((await post({ path: "/charges", headers: { authorization } })).status).toBe(503);
  }
  issuer.answer = undefined;
  expect((await post({ path: "/charges", headers: { authorization } })).status).toBe(201);
});

const CERTIFIED = "routes: [{ path: /charges, namespace: charges, caller: { clientCertificate: subject } }]";

let certificate: Certificate;
let second: Certificate;
let foreign: Certificate;
beforeAll(async () => {
  [certificate, second, foreign] = await Promise.all([
    makeCertificate(),
    makeCertificate(1, "second"),
    makeCertificate(1, "foreign"),
  ]);
  return () => Promise.all([certificate, second, foreign].map((made) => made.remove()));
});

test("over TLS, the caller is its certificate's subject; without one, no request arrives", async () => {
  const { pem } = certificate;
  const effect = vi.fn(charge);
  const { proxy } = await startWorld(world, effect, {
    routes: CERTIFIED,
    tls: { ...pem, clientCa: pem.cert + second.pem.cert },
  });
  const post = async (own: object) => {
    const headers = { "idempotency-key": "order-1" };
    const outgoing = request({
      ...{ ...own, headers, ca: pem.cert, host: "127.0.0.1", port: proxy.port, agent: false },
      ...{ method: "POST", path: "/charges" },
    });
    outgoing.end("{}");
    const [response] = await once(outgoing, "response");
    return [response.statusCode, await text(response), response.headers["idempotency-replayed"]];
  };
  expect(await post(pem)).toEqual([201, "charged", undefined]);
  expect(await post(pem)).toEqual([201, "charged", "true"]);
  expect(await post(second.pem)).toEqual([201, "charged", undefined]);
  await expect(post({})).rejects.toThrow();
  await expect(post(foreign.pem)).rejects.toThrow();
  expect(effect).toHaveBeenCalledTimes(2);
});

test("a route for certificates needs their authorities, and a wrong one is refused", async () => {
  const onceward = createOnceward({ address: "http://127.0.0.1:1", apiKey: "none" });
  onTestFinished(() => onceward.close());
  const anywhere = { host: "127.0.0.1", port: 0 };
  const start = async (more: Pick<Parameters<typeof startProxy>[0], "tls">) => {
    const upstream = new URL("http://127.0.0.1:1");
    const routes = parseConfig(CERTIFIED, "routes.yaml");
    await startProxy({
      onceward,
      upstream,
      routes,
      listen: anywhere,
      management: anywhere,
      warn: () => {},
      ...more,
    });
  };
  await expect(start({})).rejects.toThrow("name the authorities of clients");
  const wrong = { cert: "none", key: "none", clientCa: "none" };
  await expect(start({ tls: wrong })).rejects.toThrow("certificate or its key can't be used");
});
