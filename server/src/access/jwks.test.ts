import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { errors, exportJWK, type FlattenedJWSInput, generateKeyPair, type JWK } from "jose";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createJwks, type Jwks } from "./jwks.ts";

const COOLDOWN_MS = 5000;
const REFRESH_AFTER_MS = 5 * 60_000;
const TOKEN: FlattenedJWSInput = { payload: "", signature: "" };

beforeEach(() => {
  // Only the clocks, ours and jose's: requests need real timers.
  vi.useFakeTimers({ toFake: ["performance", "Date"] });
});

afterEach(() => {
  vi.useRealTimers();
});

async function publicJwk(kid: string): Promise<JWK> {
  const { publicKey } = await generateKeyPair("ES256");
  return { ...(await exportJWK(publicKey)), kid };
}

/** Starts an issuer that publishes one key, `first`, and creates a `Jwks` of it. */
async function setUp() {
  const published = { keys: [await publicJwk("first")] };
  const respond = vi.fn((response: ServerResponse) => {
    response.end(JSON.stringify(published));
  });
  const server = createServer((_request, response) => {
    response.setHeader("connection", "close");
    respond(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const onFailed = vi.fn();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const jwks = createJwks({ url, cooldownMs: COOLDOWN_MS, onFailed });
  return {
    published,
    respond,
    onFailed,
    jwks,
    find: (kid: string) => jwks.keyFor({ alg: "ES256", kid }, TOKEN),
  };
}

function fail(response: ServerResponse): void {
  response.writeHead(500).end();
}

/** Redirects to a path that has a valid key set. */
function redirect(response: ServerResponse): void {
  if (response.req.url === "/elsewhere") response.end(JSON.stringify({ keys: [] }));
  else response.writeHead(302, { location: "/elsewhere" }).end();
}

const unknown = expect.any(errors.JWKSNoMatchingKey);
const unavailable = { reason: "ISSUER_UNAVAILABLE", retryAfterMs: COOLDOWN_MS };

describe("an issuer's keys", () => {
  test("are fetched once for concurrent tokens", async () => {
    const { respond, find } = await setUp();
    const [key] = await Promise.all([find("first"), find("first"), find("first")]);
    expect(key).toMatchObject({ type: "public" });
    await find("first");
    expect(respond).toHaveBeenCalledTimes(1);
  });

  test("are fetched again for an unknown key, at most once in a cooldown", async () => {
    const { published, respond, find } = await setUp();
    await find("first");
    published.keys = [await publicJwk("second")];
    for (const kid of ["second", "made-up-1", "made-up-2"]) await expect(find(kid)).rejects.toEqual(unknown);
    expect(respond).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(COOLDOWN_MS);
    await find("second");
    for (const kid of ["first", "made-up-3"]) await expect(find(kid)).rejects.toEqual(unknown);
    expect(respond).toHaveBeenCalledTimes(2);
  });

  test.each([
    ["a token is verified", (jwks: Jwks) => jwks.keyFor({ alg: "ES256", kid: "first" }, TOKEN)],
    ["a cached token is used", (jwks: Jwks) => jwks.current()],
  ])(
    "are fetched again after five minutes when %s, so that a withdrawn key becomes unknown",
    async (_when, use) => {
      const { published, respond, jwks, find } = await setUp();
      await find("first");
      const before = jwks.current();
      published.keys = [await publicJwk("second")];
      vi.advanceTimersByTime(REFRESH_AFTER_MS);
      await use(jwks);
      await vi.waitUntil(() => jwks.current() !== before, 30_000);
      await expect(find("first")).rejects.toEqual(unknown);
      expect(respond).toHaveBeenCalledTimes(2);
    },
  );

  test("keep their object while they stay the same", async () => {
    const { respond, jwks, find } = await setUp();
    await find("first");
    const before = jwks.current();
    vi.advanceTimersByTime(COOLDOWN_MS);
    await expect(find("made-up")).rejects.toEqual(unknown);
    expect(respond).toHaveBeenCalledTimes(2);
    expect(jwks.current()).toBe(before);
  });

  test("keep working while the issuer fails, and unknown keys are unavailable, not invalid", async () => {
    const { respond, onFailed, find } = await setUp();
    await find("first");
    respond.mockImplementation(fail);
    vi.advanceTimersByTime(REFRESH_AFTER_MS);
    await find("first");
    await vi.waitUntil(() => onFailed.mock.calls.length === 1, 30_000);
    await find("first");
    for (const kid of ["second", "third"]) await expect(find(kid)).rejects.toMatchObject(unavailable);
    expect(respond).toHaveBeenCalledTimes(2);
  });

  test("are found once the issuer answers again", async () => {
    const { respond, find } = await setUp();
    respond.mockImplementationOnce(fail);
    for (let i = 0; i < 3; i++) await expect(find("first")).rejects.toMatchObject(unavailable);
    expect(respond).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(COOLDOWN_MS);
    await find("first");
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ["an error", fail],
    ["no JSON", (response) => response.end("<html>")],
    ["no keys", (response) => response.end("{}")],
    [
      "more than 256 KiB",
      (response) => response.end(JSON.stringify({ keys: [], more: "x".repeat(300_000) })),
    ],
    ["a redirect", redirect],
    ["a closed connection", (response) => response.destroy()],
  ])("stay unchanged when the issuer answers with %s", async (_what, answer) => {
    const { respond, onFailed, jwks, find } = await setUp();
    await find("first");
    const before = jwks.current();
    respond.mockImplementation(answer);
    vi.advanceTimersByTime(COOLDOWN_MS);
    await expect(find("second")).rejects.toMatchObject(unavailable);
    expect(onFailed).toHaveBeenCalledTimes(1);
    expect(jwks.current()).toBe(before);
  });

  test("keep working through failures, with one request in a cooldown, until the issuer answers", async () => {
    const { published, respond, onFailed, jwks, find } = await setUp();
    const key = await find("first");
    const before = jwks.current();
    const failures = [fail, redirect, (response: ServerResponse) => response.destroy()];
    const rounds = 12;
    for (let round = 0; round < rounds; round++) {
      respond.mockImplementation(failures[round % failures.length] as typeof fail);
      vi.advanceTimersByTime(round < rounds / 2 ? COOLDOWN_MS : REFRESH_AFTER_MS);
      const others = Array.from({ length: 50 }, (_, index) => `made-up-${round}-${index}`);
      await Promise.all(others.map((kid) => expect(find(kid)).rejects.toMatchObject(unavailable)));
      expect(await find("first")).toBe(key);
      expect(jwks.current()).toBe(before);
    }
    expect(respond).toHaveBeenCalledTimes(1 + rounds);
    expect(onFailed).toHaveBeenCalledTimes(rounds);
    published.keys = [await publicJwk("second")];
    respond.mockImplementation((response) => response.end(JSON.stringify(published)));
    vi.advanceTimersByTime(COOLDOWN_MS);
    await find("second");
    await expect(find("first")).rejects.toEqual(unknown);
    expect(respond).toHaveBeenCalledTimes(2 + rounds);
    expect(onFailed).toHaveBeenCalledTimes(rounds);
  });
});
