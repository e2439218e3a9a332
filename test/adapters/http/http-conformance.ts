import { gzipSync } from "node:zlib";
import { currentClaim } from "@onceward/client";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { problemOf } from "./http-client.ts";
import { speaksProfiles } from "./http-profiles.ts";
import { refuses, writesRefusals } from "./http-refusals.ts";
import { leavesToThePolicy } from "./http-unknown-outcomes.ts";
import { type Begin, createWorlds, type Effect, type StartApp } from "./http-world.ts";

const charged = {
  status: 201,
  headers: { "content-type": "application/pdf", location: "/charges/1", etag: '"1"', "x-request-id": "r-1" },
  cookies: ["session=secret; HttpOnly", "theme=dark"],
  // Not UTF-8, because bytes are replayed.
  body: Buffer.from([0x7b, 0x7d, 0xff, 0xfe, 0x00]),
};

/** Abilities of an adapter that depend on its framework. */
export interface Framework {
  /** Whether the adapter knows the patterns of routes. */
  readonly routes: boolean;
}

/**
 * Tests a framework's adapter against the promises of all adapters. `more` adds tests of only this adapter.
 */
export function describeHttpAdapter(
  name: string,
  startApp: StartApp,
  framework: Framework,
  more: (begin: Begin) => void = () => {},
): void {
  const worlds = createWorlds();
  const begin: Begin = (effect, options) =>
    worlds.begin((onceward, appOptions) => startApp(onceward, appOptions, effect), options);

  describe(name, () => {
    beforeAll(() => worlds.start());
    afterAll(() => worlds.stop());
    describe("replays", () => replays(begin));
    describe("releases", () => releases(begin));
    describe("leaves to the policy", () => leavesToThePolicy(begin));
    describe("refuses", () => refuses(begin));
    describe("tells apart", () => tellsApart(begin, framework));
    describe("answers without a result", () => answersWithoutResult(begin));
    describe("writes refusals", () => writesRefusals(begin));
    describe("speaks the profile", () => speaksProfiles(begin, framework));
    guardsTwice(begin);
    knowsItsClaim(begin);
    more(begin);
  });
}

function replays(begin: Begin): void {
  test("the status, the body and the headers that describe it, byte for byte", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    const first = await world.send();
    const repeat = await world.send();
    expect(first).toMatchObject({ status: 201, body: charged.body });
    expect(repeat).toMatchObject({ status: 201, body: charged.body });
    for (const header of ["content-type", "location", "etag"] as const) {
      expect(first.headers[header], header).toBe(charged.headers?.[header]);
      expect(repeat.headers[header], header).toBe(charged.headers?.[header]);
    }
    expect(first.headers["idempotency-replayed"]).toBeUndefined();
    expect(repeat.headers["idempotency-replayed"]).toBe("true");
    expect(effect).toHaveBeenCalledOnce();
  });

  test("no cookie and no header that is not allowed, which the first answer has", async () => {
    const world = await begin(() => charged);
    const first = await world.send();
    const repeat = await world.send();
    expect(first.headers["set-cookie"]).toBe("session=secret; HttpOnly,theme=dark");
    expect(first.headers["x-request-id"]).toBe("r-1");
    expect(repeat.headers).not.toHaveProperty("set-cookie");
    expect(repeat.headers).not.toHaveProperty("x-request-id");
  });

  test("a header that is allowed by name", async () => {
    const world = await begin(() => charged, { options: { replayHeaders: ["X-Request-Id"] } });
    await world.send();
    expect((await world.send()).headers["x-request-id"]).toBe("r-1");
  });

  test("a compressed answer, decoded for a client that does not accept its coding", async () => {
    const body = gzipSync("charged");
    const headers = { "content-encoding": "gzip", "content-type": "application/pdf", etag: '"1"' };
    const world = await begin(() => ({ status: 201, headers, body }));
    const accepting = { headers: { "accept-encoding": "gzip, br;q=0.5" } };
    const refusing = { headers: { "accept-encoding": "gzip;q=0, identity" } };
    // A request without the header accepts any coding.
    for (const client of [accepting, accepting, {}])
      expect(await world.send(client)).toMatchObject({ headers, body });
    const repeat = await world.send(refusing);
    expect(repeat).toMatchObject({ status: 201, body: Buffer.from("charged") });
    expect(repeat.headers).toMatchObject({ "content-type": "application/pdf", etag: 'W/"1"' });
    expect(repeat.headers).not.toHaveProperty("content-encoding");
  });

  test("an answer without a body", async () => {
    const effect = vi.fn(() => ({ status: 204 }));
    const world = await begin(effect);
    for (const _ of [1, 2]) {
      const answer = await world.send();
      expect(answer).toMatchObject({ status: 204, body: Buffer.alloc(0) });
      expect(answer.headers).not.toHaveProperty("content-type");
    }
    expect(effect).toHaveBeenCalledOnce();
  });

  test("an answer that refuses the request permanently", async () => {
    const effect = vi.fn(() => ({ status: 402, body: Buffer.from("card declined") }));
    const world = await begin(effect);
    for (const _ of [1, 2]) {
      expect(await world.send()).toMatchObject({ status: 402, body: Buffer.from("card declined") });
    }
    expect(effect).toHaveBeenCalledOnce();
  });

  test("one answer to ten concurrent requests that wait, with one effect", async () => {
    const effect = vi.fn(async () => charged);
    const world = await begin(effect, { options: { waitMs: 10_000 } });
    const answers = await Promise.all(Array.from({ length: 10 }, () => world.send()));
    for (const answer of answers) expect(answer).toMatchObject({ status: 201, body: charged.body });
    expect(answers.filter(({ headers }) => headers["idempotency-replayed"] === "true")).toHaveLength(9);
    expect(effect).toHaveBeenCalledOnce();
  });
}

function knowsItsClaim(begin: Begin): void {
  test("the current claim of a handler is that of its request, also after an await", async () => {
    const world = await begin(async (claim) => {
      await new Promise((resolve) => setImmediate(resolve));
      return { status: currentClaim() === claim ? 201 : 500 };
    });
    expect((await world.send()).status).toBe(201);
  });
}

function releases(begin: Begin): void {
  test.each([500, 503, 429])("a %i reaches its client, and the next attempt runs", async (status) => {
    const headers = { "retry-after": "1" };
    const later = { status, headers, body: Buffer.from("later") };
    const effect = vi.fn<Effect>(() => charged).mockReturnValueOnce(later);
    const world = await begin(effect);
    expect(await world.send()).toMatchObject({ status, body: Buffer.from("later") });
    const second = await world.send();
    expect(second).toMatchObject({ status: 201, body: charged.body });
    expect(second.headers).not.toHaveProperty("idempotency-replayed");
    expect(effect.mock.calls.map(([claim]) => claim?.attempt)).toEqual([1, 2]);
  });

  test("a handler that throws", async () => {
    const effect = vi.fn<Effect>(() => charged).mockRejectedValueOnce(new Error("the provider is down"));
    const world = await begin(effect);
    expect((await world.send()).status).toBe(500);
    expect((await world.send()).status).toBe(201);
    expect(effect).toHaveBeenCalledTimes(2);
  });

  test("a 500, however the client classifies errors", async () => {
    const effect = vi.fn<Effect>(() => charged).mockReturnValueOnce({ status: 500 });
    const world = await begin(effect, { client: { classifyError: () => "terminal" } });
    await world.send();
    expect((await world.send()).status).toBe(201);
  });

  test("any status that the route does not store", async () => {
    const effect = vi.fn<Effect>(() => ({ status: 402 }));
    const world = await begin(effect, { options: { stores: ({ status }) => status !== 402 } });
    await world.send();
    await world.send();
    expect(effect).toHaveBeenCalledTimes(2);
  });
}

function tellsApart(begin: Begin, { routes }: Framework): void {
  test("callers, routes and methods with the same key", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    await world.send();
    await world.send({ headers: { "x-account": "a-2" } });
    await world.send({ method: "PATCH" });
    await world.send({ path: "/refunds/1" });
    expect(effect).toHaveBeenCalledTimes(4);
  });

  test("no forms of one key", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    await world.send({ key: '"order-1"' });
    await world.send({ key: "order-1" });
    expect(effect).toHaveBeenCalledOnce();
  });

  test("no methods that need no key: they pass", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    for (const method of ["GET", "GET", "PUT"]) await world.send({ method });
    expect(effect.mock.calls).toEqual([[undefined], [undefined], [undefined]]);
  });

  test(`${routes ? "no" : "all"} paths of one route`, async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    await world.send({ path: "/charges/1" });
    expect((await world.send({ path: "/charges/2" })).status).toBe(routes ? 422 : 201);
  });

  test("no ways to write one JSON value", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    await world.send({ body: '{"a":1,"b":2}' });
    expect((await world.send({ body: '{ "b": 2, "a": 1 }' })).status).toBe(201);
    const unreadable = await world.send({ key: "k-2", body: String.raw`{"a":"\ud800"}` });
    expect(unreadable.status).toBe(400);
  });

  test.each([
    ["nothing", undefined],
    ["a lone surrogate", "\ud800"],
  ])("no requests whose custom fingerprint is %s, and answers 400", async (_, fingerprint) => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect, { options: { fingerprint: () => fingerprint } });
    const answer = await world.send();
    expect(problemOf(answer)).toMatchObject({ status: 400, type: "urn:onceward:problem:request-unreadable" });
    expect(effect).not.toHaveBeenCalled();
  });

  test("requests by their custom fingerprint, also if it is a promise", async () => {
    const effect = vi.fn(() => charged);
    const amounts = [1, 1, 2];
    const world = await begin(effect, { options: { fingerprint: async () => amounts.shift() } });
    expect((await world.send()).status).toBe(201);
    expect((await world.send({ body: '{"amount":2}' })).status).toBe(201);
    expect((await world.send()).status).toBe(422);
  });

  test("bodies, also empty ones", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    await world.send({ body: "", headers: { "content-type": "text/plain" } });
    expect((await world.send({ body: "x", headers: { "content-type": "text/plain" } })).status).toBe(422);
    expect(effect).toHaveBeenCalledOnce();
  });
}

function answersWithoutResult(begin: Begin): void {
  test.each([
    ["the policy allows", 70_000],
    ["any policy allows", 3 * 2 ** 20],
  ])("larger than %s: its client gets it, and a repeat gets 410", async (_, sizeBytes) => {
    const body = Buffer.alloc(sizeBytes, "x");
    const effect = vi.fn(() => ({ status: 200, body }));
    const world = await begin(effect);
    const first = await world.send();
    expect(first.status).toBe(200);
    expect(first.body.equals(body)).toBe(true);
    expect((await world.send()).status).toBe(410);
    expect(effect).toHaveBeenCalledOnce();
  });

  test.each([
    ["a content type", { "content-type": `text/plain; a=${"x".repeat(255)}` }],
    ["a header", { link: `</${"x".repeat(4096)}>; rel=next` }],
  ])(
    "%s too large to store: the client gets it, a repeat gets 410, an event reports it",
    async (_, headers) => {
      const effect = vi.fn(() => ({ status: 200, headers, body: Buffer.from("charged") }));
      const onEvent = vi.fn();
      const world = await begin(effect, { client: { onEvent } });
      const first = await world.send();
      expect(first).toMatchObject({ status: 200, body: Buffer.from("charged") });
      expect((await world.send()).status).toBe(410);
      const notStored = { type: "not-stored", reason: "RESULT_TOO_LARGE" };
      expect(onEvent).toHaveBeenCalledWith(expect.objectContaining(notStored));
      expect(effect).toHaveBeenCalledOnce();
    },
  );
}

function guardsTwice(begin: Begin): void {
  test("a request that is guarded twice is handled once, under the first guard's claim", async () => {
    const effect = vi.fn<Effect>(() => charged);
    const world = await begin(effect);
    expect(await world.send({ path: "/twice" })).toMatchObject({ status: 201, body: charged.body });
    expect((await world.send({ path: "/twice" })).headers["idempotency-replayed"]).toBe("true");
    expect(effect.mock.calls).toMatchObject([[{ attempt: 1 }]]);
  });
}
