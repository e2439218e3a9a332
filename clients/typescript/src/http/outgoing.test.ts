import { expect, test } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { formatIdempotencyKey, type OutgoingOptions, withIdempotencyKeys } from "../http.ts";
import type { Claim } from "../run/claim.ts";

const BANK = "https://bank.example.com/v1/charges";
const POST = { method: "POST", body: "{}", redirect: "error", headers: { "x-trace": "1" } } as const;

type Call = [input: Request | URL | string, init?: RequestInit | undefined, options?: OutgoingOptions];

async function sent(...[input, init, options]: Call): Promise<Request> {
  let request: Request | undefined;
  const note: typeof fetch = async (...call) => {
    request = new Request(...call);
    return new Response();
  };
  await withIdempotencyKeys(note, options)(input, init);
  return request as Request;
}

async function keyOf(...call: Call): Promise<string | null> {
  return (await sent(...call)).headers.get("idempotency-key");
}

async function withinRun(fn: (claim: Claim) => Promise<void>): Promise<void> {
  await newTesting().onceward.run({ namespace: "orders", key: "order-1" }, fn);
}

test("a call has the key of its claim, method, host and path, and is otherwise unchanged", async () => {
  await withinRun(async (claim) => {
    const charge = formatIdempotencyKey(claim.deriveKey("POST bank.example.com/v1/charges"));
    for (const input of [`${BANK}?trace=1`, new URL(BANK), new Request(BANK, POST)]) {
      const request = await sent(input, input instanceof Request ? undefined : POST);
      expect(request.headers.get("idempotency-key")).toBe(charge);
      expect(request.headers.get("x-trace")).toBe("1");
      expect([await request.text(), request.redirect]).toEqual(["{}", "error"]);
    }
  });
});

test("a call may have a name of its own", async () => {
  await withinRun(async (claim) => {
    const key = await keyOf(`${BANK}?2`, POST, { name: ({ method, url }) => `${method} ${url.search}` });
    expect(key).toBe(formatIdempotencyKey(claim.deriveKey("POST ?2")));
  });
});

test("a caller's own key is kept, and a safe method or a call after the claim has none", async () => {
  const ended = Promise.withResolvers<void>();
  let left: Promise<string | null> | undefined;
  await withinRun(async () => {
    const own = { ...POST, headers: { "Idempotency-Key": '"own"' } };
    expect(await keyOf(BANK, own)).toBe('"own"');
    expect(await keyOf(new Request(BANK, own))).toBe('"own"');
    expect(await keyOf(BANK)).toBeNull();
    left = ended.promise.then(() => keyOf(BANK, POST));
  });
  ended.resolve();
  expect(await left).toBeNull();
  expect(await keyOf(BANK, POST)).toBeNull();
});
