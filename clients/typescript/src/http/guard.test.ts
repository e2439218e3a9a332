import { expect, onTestFinished, test, vi } from "vitest";
import { InvalidRequestError } from "../errors/catalogue.ts";
import { idempotent } from "../http.ts";
import { joinKey } from "../keys/keys.ts";
import { OutcomeUnknownError } from "../run/outcome-unknown.ts";
import { happened } from "../run/resolution.ts";
import { createTestingOnceward } from "../testing.ts";

const request = () =>
  new Request("http://localhost/charges", { method: "POST", headers: { "idempotency-key": "k-1" } });
const options = { namespace: "charges", caller: () => "a-1", fingerprint: () => 1 };

/** Stores a result as another program with a key of the tenant may: with any metadata. */
async function storeForeign(metadata: Readonly<Record<string, string>>) {
  const { onceward } = createTestingOnceward();
  const encode = () => ({ payload: new Uint8Array(), contentType: "text/plain", metadata: { ...metadata } });
  const codec = { encode, decode: () => undefined };
  const key = joinKey("POST", "/charges", "a-1", "k-1");
  await onceward.run({ namespace: "charges", key, fingerprint: 1, codec }, () => undefined);
  return idempotent(onceward, options, vi.fn());
}

test("a replay has only allowed headers, regardless of what the record holds", async () => {
  const handle = await storeForeign({
    "http-status": "201",
    "http-header-etag": '"1"',
    "http-header-set-cookie": "session=stolen",
    "http-header-Set-Cookie": "session=stolen",
    "http-header-transfer-encoding": "chunked",
    "http-header-connection": "upgrade",
    "http-header-x-internal": "1",
  });
  const { status, headers } = await handle(request());
  expect(status).toBe(201);
  expect(Object.fromEntries(headers)).toEqual({
    "content-type": "text/plain",
    etag: '"1"',
    "idempotency-replayed": "true",
  });
});

test("a Response that resolve found is sent, and replayed to later requests", async () => {
  const { onceward, clock } = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const key = joinKey("POST", "/charges", "a-1", "k-1");
  await onceward.api.claim({ namespace: "charges", key, owner: "dying" });
  clock.advance(60_000);
  const handler = vi.fn();
  const resolve = vi.fn((_claim, native: Request) =>
    happened(
      Response.json({ found: native.url }, { status: 201, headers: { etag: '"1"', "set-cookie": "no" } }),
    ),
  );
  const handle = idempotent(onceward, { ...options, resolve }, handler);
  for (const _ of ["first", "repeat"]) {
    const { status, headers, ...answer } = await handle(request()).then(async (response) => ({
      status: response.status,
      headers: response.headers,
      body: await response.json(),
    }));
    expect([status, headers.get("etag"), headers.get("set-cookie")]).toEqual([201, '"1"', null]);
    expect(answer.body).toEqual({ found: "http://localhost/charges" });
  }
  expect(resolve).toHaveBeenCalledOnce();
  expect(handler).not.toHaveBeenCalled();
});

test("a found value that is not a Response leaves the key ambiguous, and a warning says why", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warn.mockRestore());
  const { onceward, clock } = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const key = joinKey("POST", "/charges", "a-1", "k-1");
  await onceward.api.claim({ namespace: "charges", key, owner: "dying" });
  clock.advance(60_000);
  const handler = vi.fn();
  const handle = idempotent(onceward, { ...options, resolve: () => happened({ id: "ch_1" }) }, handler);
  for (const _ of ["first", "repeat"]) expect((await handle(request())).status).toBe(409);
  expect(handler).not.toHaveBeenCalled();
  const code = "ONCEWARD_RESOLVE_FAILED";
  expect(warn.mock.calls).toEqual([
    [expect.stringContaining("Response.json"), expect.objectContaining({ code })],
  ]);
});

test.each(["101", "103", "0", "600", "200.5", "ok"])(
  "a record with the status %s is not replayed: its result is gone",
  async (status) => {
    const handle = await storeForeign({ "http-status": status, "http-header-set-cookie": "session=stolen" });
    const answer = await handle(request());
    expect([answer.status, answer.headers.get("set-cookie")]).toEqual([410, null]);
  },
);

test("of a response of which a mark is stored, a duplicate is answered that its result is gone", async () => {
  const { onceward } = createTestingOnceward();
  const handler = vi.fn(() => Response.json({ secret: "once" }, { status: 201 }));
  const handle = idempotent(onceward, { ...options, stores: "mark" }, handler);
  const first = await handle(request());
  expect([first.status, await first.json()]).toEqual([201, { secret: "once" }]);
  expect((await handle(request())).status).toBe(410);
  expect(handler).toHaveBeenCalledTimes(1);
});

test("what resolve found is sent, also where only a mark of a success is stored", async () => {
  const { onceward, clock } = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const resolve = () => happened(new Response("found", { status: 201 }));
  const handler = () => Promise.reject(new OutcomeUnknownError("no answer"));
  const handle = idempotent(onceward, { ...options, stores: "mark", resolve }, handler);
  expect((await handle(request())).status).toBe(409);
  clock.advance(60_000);
  const found = await handle(request());
  expect([found.status, await found.text()]).toEqual([201, "found"]);
  expect((await handle(request())).status).toBe(410);
});

test("a refusal is replayed as it was, also where only a mark of a success is stored", async () => {
  const { onceward } = createTestingOnceward();
  const handler = vi.fn(() => Response.json({ code: "card_declined" }, { status: 402 }));
  const handle = idempotent(onceward, { ...options, stores: "mark" }, handler);
  for (const _ of ["first", "repeat"]) {
    const answer = await handle(request());
    expect([answer.status, await answer.json()]).toEqual([402, { code: "card_declined" }]);
  }
  expect(handler).toHaveBeenCalledTimes(1);
});

class Order {
  readonly total = 100;
}

test.each([
  ["bytes that are not a hash", new Uint8Array(5), "hash them first"],
  ["a Map", new Map([["total", 100]]), "is a Map; pass Object.fromEntries(map)"],
  ["an entity", new Order(), "is a Order; pass an object with the fields that count"],
])("a fingerprint of %s is an error for the API's owner, and a warning", async (_, value, reason) => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warn.mockRestore());
  const handler = vi.fn();
  const { onceward } = createTestingOnceward();
  const handle = idempotent(onceward, { ...options, fingerprint: () => value }, handler);
  await expect(handle(request())).rejects.toThrow(reason);
  await expect(handle(request())).rejects.toThrow(InvalidRequestError);
  expect(handler).not.toHaveBeenCalled();
  const code = "ONCEWARD_NO_FINGERPRINT";
  expect(warn.mock.calls).toEqual([[expect.stringContaining(reason), expect.objectContaining({ code })]]);
});

test.each([
  ["a number that is not finite", { amount: Number.NaN }],
  ["an invalid date", { at: new Date("never") }],
])("a fingerprint of %s is the client's error (400), and a warning", async (_, value) => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warn.mockRestore());
  const { onceward } = createTestingOnceward();
  const handle = idempotent(onceward, { ...options, fingerprint: () => value }, vi.fn());
  expect([(await handle(request())).status, (await handle(request())).status]).toEqual([400, 400]);
  expect(warn).toHaveBeenCalledOnce();
});

const NOW = new Date("2030-01-01T12:00:00Z");

/** Sends a key to a guard whose policy remembers keys for an hour, and requires that they contain their time. */
async function sendKey(key: string, handler = vi.fn(async () => new Response("charged"))) {
  const policy = { lateKeys: "REQUIRE_TIME", keyRetentionS: 3600 } as const;
  const { onceward } = createTestingOnceward({ now: NOW, policy });
  const headers = { "idempotency-key": `"${key}"` };
  const answer = await idempotent(
    onceward,
    options,
    handler,
  )(new Request("http://localhost/charges", { method: "POST", headers }));
  return { answer, handler };
}

test("a request whose key was made too long ago is answered with 410, and is not handled", async () => {
  const { answer, handler } = await sendKey("01b8dceb-0500-7000-8000-000000000000");
  expect([answer.status, answer.headers.get("content-type")]).toEqual([410, "application/problem+json"]);
  expect(await answer.json()).toMatchObject({
    type: "urn:onceward:problem:key-too-old",
    title: "Too old to retry: find out what happened.",
  });
  expect(handler).not.toHaveBeenCalled();
});

test("a key that contains a recent time is handled", async () => {
  const { answer } = await sendKey("01b8dd3d-6ac0-7000-8000-000000000000");
  expect([answer.status, await answer.text()]).toEqual([200, "charged"]);
});

test.each([
  ["no time", "order-1"],
  ["a time in the future", "01b8e000-0000-7000-8000-000000000000"],
])("a key that contains %s is answered with 400 where the policy requires its time", async (_, key) => {
  const { answer, handler } = await sendKey(key);
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    { type: "urn:onceward:problem:key-without-time" },
  ]);
  expect(handler).not.toHaveBeenCalled();
});
