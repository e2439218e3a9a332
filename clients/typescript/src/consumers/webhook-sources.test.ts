import { createHmac } from "node:crypto";
import { expect, test, vi } from "vitest";
import { createTestingOnceward } from "../testing.ts";
import {
  cloudEvents,
  snsMessages,
  standardWebhooks,
  WebhookSignatureError,
  type WebhookSource,
  webhookOnce,
} from "../webhooks.ts";

const SECRET = "a secret of tests";

const signatureOf = (id: string, timestamp: string, body: string) =>
  `v1,${createHmac("sha256", SECRET).update(`${id}.${timestamp}.${body}`).digest("base64")}`;

class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

const standard = standardWebhooks((body, headers) => {
  const {
    "webhook-id": id = "",
    "webhook-timestamp": timestamp = "",
    "webhook-signature": signature,
  } = headers;
  if (signature !== signatureOf(id, timestamp, body)) throw new WebhookVerificationError("No match");
  return JSON.parse(body);
});

function standardRequest(attempt: string, secret = true): RequestInit {
  const body = JSON.stringify({ type: "invoice.paid", data: { id: "in_1" } });
  const signature = secret ? signatureOf("msg_1", attempt, body) : "v1,forged";
  return {
    body,
    headers: { "webhook-id": "msg_1", "webhook-timestamp": attempt, "webhook-signature": signature },
  };
}

const sns = snsMessages(async ({ TopicArn }) => {
  if (TopicArn !== "arn:aws:sns:eu-west-1:1:orders") throw new Error("another topic");
});

const snsRequest = (topic = "orders"): RequestInit => ({
  body: JSON.stringify({
    Type: "Notification",
    MessageId: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
    TopicArn: `arn:aws:sns:eu-west-1:1:${topic}`,
    Message: "{}",
    Timestamp: new Date().toISOString(),
  }),
});

const cloud = cloudEvents((_, headers) => {
  if (headers.get("authorization") !== SECRET) throw new WebhookSignatureError("Unknown producer");
});

const EVENT = { id: "1", source: "/orders", type: "order.paid", specversion: "1.0" };
const structured = (authorization = SECRET): RequestInit => ({
  body: JSON.stringify({ ...EVENT, data: { order: 7 } }),
  headers: { authorization, "content-type": "application/cloudevents+json" },
});
const binary: RequestInit = {
  body: JSON.stringify({ order: 7 }),
  headers: {
    authorization: SECRET,
    "content-type": "application/json",
    ...Object.fromEntries(Object.entries(EVENT).map(([name, value]) => [`ce-${name}`, value])),
  },
};

test.each<[what: string, source: WebhookSource<never>, requests: RequestInit[], forged: RequestInit]>([
  [
    "Standard Webhooks",
    standard as never,
    [standardRequest("1"), standardRequest("2")],
    standardRequest("3", false),
  ],
  ["SNS", sns as never, [snsRequest(), snsRequest()], snsRequest("others")],
  ["CloudEvents, in both modes", cloud as never, [structured(), binary], structured("forged")],
])("an event of %s that is sent again is handled once", async (_, source, requests, forged) => {
  await using testing = createTestingOnceward();
  const fn = vi.fn();
  const handle = webhookOnce(testing.onceward, { namespace: "events", source, onRejected: vi.fn() }, fn);
  const send = async (request: RequestInit) =>
    (await handle(new Request("http://localhost/", { method: "POST", ...request }))).status;
  expect(await send(forged)).toBe(401);
  expect([await send(requests[0] ?? {}), await send(requests[1] ?? {})]).toEqual([200, 200]);
  expect(fn).toHaveBeenCalledOnce();
});

test("an event of CloudEvents has the same attributes and data in both modes, and its headers", async () => {
  await using testing = createTestingOnceward();
  for (const [key, request] of Object.entries({ structured: structured(), binary })) {
    const source = {
      ...cloud,
      key: (_: unknown, headers: Headers) => `${headers.get("authorization")} ${key}`,
    };
    const fn = vi.fn();
    await webhookOnce(
      testing.onceward,
      { namespace: "events", source },
      fn,
    )(new Request("http://localhost/", { method: "POST", ...request }));
    const { id, type, source: from } = EVENT;
    const [event, claim, headers] = fn.mock.calls[0] ?? [];
    expect(event).toMatchObject({ id, type, source: from, data: { order: 7 } });
    expect([claim.key, headers.get("authorization")]).toEqual([`${SECRET} ${key}`, SECRET]);
  }
});
