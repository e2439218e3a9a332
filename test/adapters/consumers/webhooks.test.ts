import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { type EmitterWebhookEvent, Webhooks } from "@octokit/webhooks";
import definitions from "@octokit/webhooks-examples" with { type: "json" };
import { TerminalError } from "@onceward/client";
import { decodeJwt, generateKeyPair, jwtVerify, SignJWT } from "jose";
import Stripe from "stripe";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  appleNotifications,
  githubEvents,
  stripeEvents,
  type WebhookRejection,
  WebhookSignatureError,
  type WebhookSource,
  webhookOnce,
} from "../../../clients/typescript/src/webhooks.ts";
import { collectWarnings, type Guarded, newTimedGuard, useGuards } from "./fixtures.ts";

const SECRET = "whsec_a_secret_that_only_tests_have";
const stripe = new Stripe("sk_test_none");
const webhooks = new Webhooks({ secret: SECRET });

const newGuard = useGuards();

/** Serves the handler over HTTP, and returns a function that sends a request to it. */
async function serveOnce<Event>(
  { onceward, options }: Pick<Guarded, "onceward" | "options">,
  source: WebhookSource<Event>,
  fn: (event: Event) => unknown,
  onRejected?: (rejection: WebhookRejection) => void,
) {
  const handler = webhookOnce(onceward, { ...options, source, onRejected }, fn);
  const server = serve({ fetch: handler, port: 0, hostname: "127.0.0.1" });
  await once(server, "listening");
  onTestFinished(async () => {
    server.close();
    await once(server, "close");
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return async ({ body, headers }: Sent) => {
    const response = await fetch(url, { method: "POST", body, headers: { ...headers, connection: "close" } });
    const replayed = response.headers.get("idempotency-replayed");
    const retryAfter = response.headers.get("retry-after");
    return { status: response.status, replayed, retryAfter, text: await response.text() };
  };
}

interface Sent {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const stripeSource = stripeEvents((body, signature) =>
  stripe.webhooks.constructEventAsync(body, signature, SECRET),
);

function stripeEvent(id: string, secret = SECRET, createdMs = Date.now()): Sent {
  const body = JSON.stringify({
    id,
    created: Math.floor(createdMs / 1000),
    object: "event",
    type: "invoice.paid",
    data: { object: { id: "in_1", object: "invoice" } },
  });
  const signature = stripe.webhooks.generateTestHeaderString({ payload: body, secret });
  return { body, headers: { "stripe-signature": signature } };
}

test("a Stripe event that is sent again is handled once, and answered 200 both times", async () => {
  await using guard = await newGuard();
  const types: string[] = [];
  const send = await serveOnce(guard, stripeSource, (event) => types.push(event.type));
  expect(await send(stripeEvent("evt_1"))).toMatchObject({ status: 200, replayed: null });
  expect(await send(stripeEvent("evt_1"))).toMatchObject({ status: 200, replayed: "true" });
  expect(await send(stripeEvent("evt_2"))).toMatchObject({ status: 200, replayed: null });
  expect(guard.deliveries).toMatchObject([
    { kind: "processed", key: "evt_1" },
    { kind: "duplicate", key: "evt_1" },
    { kind: "processed", key: "evt_2" },
  ]);
  expect(types).toEqual(["invoice.paid", "invoice.paid"]);
});

test("an event that Stripe created too long ago is answered 400, and is not handled", async () => {
  const guard = newTimedGuard();
  const fn = vi.fn();
  const send = await serveOnce(guard, stripeSource, fn);
  expect(await send(stripeEvent("evt_1"))).toMatchObject({ status: 200 });
  expect(await send(stripeEvent("evt_2", SECRET, Date.now() - 120_000))).toMatchObject({
    status: 400,
    text: expect.stringContaining("Find out whether"),
  });
  expect(guard.kinds()).toEqual(["processed", "refused"]);
  expect(fn).toHaveBeenCalledOnce();
});

test.each([
  ["of another secret", stripeEvent("evt_1", "whsec_of_somebody_else")],
  ["of another body", { ...stripeEvent("evt_1"), body: stripeEvent("evt_2").body }],
  ["that is missing", { ...stripeEvent("evt_1"), headers: {} }],
])("a signature %s is answered 401, and nothing is claimed", async (_, request) => {
  await using guard = await newGuard();
  const fn = vi.fn();
  const claims = vi.spyOn(guard.onceward.calls, "claim");
  const rejections: WebhookRejection[] = [];
  const send = await serveOnce(guard, stripeSource, fn, (rejection) => rejections.push(rejection));
  expect(await send(request)).toMatchObject({ status: 401 });
  expect(rejections).toEqual([{ status: 401, error: expect.any(WebhookSignatureError) }]);
  expect(claims).not.toHaveBeenCalled();
  expect(guard.deliveries).toEqual([]);
  expect(fn).not.toHaveBeenCalled();
});

const misconfigured: [string, WebhookSource<unknown>, () => Sent | Promise<Sent>][] = [
  [
    "Stripe's by the function for another runtime's cryptography",
    stripeEvents((body, signature) => {
      const asynchronous = Stripe.createSubtleCryptoProvider();
      return stripe.webhooks.constructEvent(body, signature, SECRET, undefined, asynchronous);
    }),
    () => stripeEvent("evt_1"),
  ],
  [
    "GitHub's whose secret can't be read now",
    githubEvents(() => Promise.reject(new Error("the store of secrets is away"))),
    () => githubDelivery("7c1e2a3", "ping", "{}"),
  ],
  [
    "GitHub's of a form instead of JSON",
    githubEvents((body, signature) => webhooks.verify(body, signature)),
    () => githubDelivery("7c1e2a3", "ping", "payload=%7B%7D"),
  ],
  [
    "Apple's whose certificates can't be checked now",
    appleNotifications(() => {
      throw new TypeError("fetch failed");
    }),
    () => ({ body: '{"signedPayload":"ey"}', headers: {} }),
  ],
];

test.each(misconfigured)(
  "an event of %s is answered 500, reported, and not handled",
  async (_, source, request) => {
    await using guard = await newGuard();
    const fn = vi.fn();
    const rejections: WebhookRejection[] = [];
    const send = await serveOnce(guard, source, fn, (rejection) => rejections.push(rejection));
    const answer = await send(await request());
    expect(answer).toMatchObject({ status: 500, text: "The event could not be verified." });
    expect(rejections).toEqual([{ status: 500, error: expect.any(Error) }]);
    expect(rejections[0]?.error).not.toBeInstanceOf(WebhookSignatureError);
    expect(guard.deliveries).toEqual([]);
    expect(fn).not.toHaveBeenCalled();
  },
);

test("without a hook, each error and the first wrong signature is a warning", async () => {
  await using guard = await newGuard();
  const warnings = collectWarnings();
  const errors = [new TypeError("fetch failed"), new WebhookSignatureError("forged")];
  const verify = () => {
    throw errors.shift() ?? new WebhookSignatureError("forged");
  };
  const send = await serveOnce(guard, { verify, key: () => "evt_1" }, vi.fn());
  const statuses: number[] = [];
  for (let times = 0; times < 3; times++) statuses.push((await send(stripeEvent("evt_1"))).status);
  expect(statuses).toEqual([500, 401, 401]);
  expect(warnings).toEqual(["ONCEWARD_WEBHOOK_REJECTED", "ONCEWARD_WEBHOOK_REJECTED"]);
});

test("an event that another holder handles is answered 503, so that it is sent again", async () => {
  await using guard = await newGuard();
  const complete = await guard.holdElsewhere("evt_1");
  const send = await serveOnce(guard, stripeSource, vi.fn());
  expect(await send(stripeEvent("evt_1"))).toMatchObject({ status: 503, retryAfter: "5" });
  await complete();
  expect(await send(stripeEvent("evt_1"))).toMatchObject({ status: 200, replayed: "true" });
  expect(guard.kinds()).toEqual(["postponed", "duplicate"]);
});

test("an event whose handler throws gets 500 without the reason, and is handled when resent", async () => {
  await using guard = await newGuard();
  const fn = vi.fn().mockRejectedValueOnce(new Error("password wrong at db-7"));
  const send = await serveOnce(guard, stripeSource, fn);
  const failed = await send(stripeEvent("evt_1"));
  expect(failed.status).toBe(500);
  expect(failed.text).not.toContain("db-7");
  expect(await send(stripeEvent("evt_1"))).toMatchObject({ status: 200, replayed: null });
  expect(guard.kinds()).toEqual(["released", "processed"]);
});

test("an event that failed permanently is answered 200, so that it is not sent again", async () => {
  await using guard = await newGuard();
  const fn = vi.fn(() => {
    throw new TerminalError("no such customer");
  });
  const send = await serveOnce(guard, stripeSource, fn);
  for (let times = 0; times < 2; times++) {
    expect(await send(stripeEvent("evt_1"))).toMatchObject({ status: 200 });
  }
  expect(guard.kinds()).toEqual(["failed", "duplicate"]);
  expect(fn).toHaveBeenCalledOnce();
});

test("an event without an id is answered 400, and not handled", async () => {
  await using guard = await newGuard();
  const fn = vi.fn();
  const send = await serveOnce(guard, { verify: (body) => JSON.parse(body), key: ({ id }) => id }, fn);
  expect(await send({ body: "{}", headers: {} })).toMatchObject({ status: 400 });
  expect(guard.kinds()).toEqual(["refused"]);
  expect(fn).not.toHaveBeenCalled();
});

async function githubDelivery(id: string, name: string, body: string): Promise<Sent> {
  const signature = await webhooks.sign(body);
  const headers = { "x-github-delivery": id, "x-github-event": name, "x-hub-signature-256": signature };
  return { body, headers };
}

const githubSource = githubEvents<EmitterWebhookEvent>((body, signature) => webhooks.verify(body, signature));

test("every kind of GitHub delivery is handled once, as it was sent", async () => {
  await using guard = await newGuard();
  const handled: unknown[] = [];
  const send = await serveOnce(guard, githubSource, ({ name, payload }) => handled.push({ name, payload }));
  // The package's types describe a module with a default export, but it is a JSON file.
  const examples = definitions as unknown as readonly { name: string; examples: readonly unknown[] }[];
  const sent = examples.map(({ name, examples: [payload] }) => ({ name, payload }));
  for (const [index, { name, payload }] of sent.entries()) {
    const delivery = await githubDelivery(`7c1e2a3${index}`, name, JSON.stringify(payload, null, 2));
    expect(await send(delivery)).toMatchObject({ status: 200, replayed: null });
    expect(await send(delivery)).toMatchObject({ status: 200, replayed: "true" });
  }
  expect(handled).toEqual(sent);
});

test.each([
  ["with a signature of another body", { "x-hub-signature-256": `sha256=${"0".repeat(64)}` }, 401],
  ["with an empty signature", { "x-hub-signature-256": "" }, 401],
  ["without an id", { "x-github-delivery": "" }, 400],
])("a GitHub delivery %s is not handled", async (_, changed, status) => {
  await using guard = await newGuard();
  const fn = vi.fn();
  const claims = vi.spyOn(guard.onceward.calls, "claim");
  const send = await serveOnce(guard, githubSource, fn);
  const { body, headers } = await githubDelivery("7c1e2a3", "ping", '{"zen":"Keep it logically awesome."}');
  expect(await send({ body, headers: { ...headers, ...changed } })).toMatchObject({ status });
  expect(claims).not.toHaveBeenCalled();
  expect(fn).not.toHaveBeenCalled();
});

test("an Apple notification is handled once by notificationUUID; a forged one is not", async () => {
  await using guard = await newGuard();
  const apple = await generateKeyPair("ES256");
  const forger = await generateKeyPair("ES256");
  // Apple's library checks the chain of certificates, too.
  const source = appleNotifications(async (signedPayload) => {
    await jwtVerify(signedPayload, apple.publicKey).catch((cause) => {
      throw new VerificationException(1, cause);
    });
    return decodeJwt<Notification>(signedPayload);
  });
  const notificationUUID = "002e14d5-51f5-4503-b5a8-c3a1af68eb20";
  const notification = { notificationType: "DID_RENEW", notificationUUID, version: "2.0" };
  const signed = async (key: CryptoKey): Promise<Sent> => {
    const jws = new SignJWT(notification).setProtectedHeader({ alg: "ES256" });
    return { body: JSON.stringify({ signedPayload: await jws.sign(key) }), headers: {} };
  };
  const handled: Notification[] = [];
  const send = await serveOnce(guard, source, (event) => handled.push(event));
  expect(await send(await signed(forger.privateKey))).toMatchObject({ status: 401 });
  expect(await send(await signed(apple.privateKey))).toMatchObject({ status: 200, replayed: null });
  // Apple signs every attempt again.
  expect(await send(await signed(apple.privateKey))).toMatchObject({ status: 200, replayed: "true" });
  expect(guard.deliveries.map(({ key }) => key)).toEqual([notificationUUID, notificationUUID]);
  expect(handled).toEqual([notification]);
});

interface Notification {
  readonly notificationUUID: string;
}

/** The error of Apple's library, whose VERIFICATION_FAILURE is 1. */
class VerificationException extends Error {
  readonly status: number;

  constructor(status: number, cause: unknown) {
    super("", { cause });
    this.status = status;
  }
}

test.each([
  ["no JSON", "{"],
  ["no signed payload", "{}"],
  ["nothing", ""],
])("an Apple notification with %s is answered 401", async (_, body) => {
  await using guard = await newGuard();
  const verify = vi.fn();
  const send = await serveOnce(guard, appleNotifications(verify), vi.fn(), () => {});
  expect(await send({ body, headers: {} })).toMatchObject({ status: 401 });
  expect(verify).not.toHaveBeenCalled();
});
