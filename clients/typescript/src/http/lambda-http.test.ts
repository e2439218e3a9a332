import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test, vi } from "vitest";
import { OutcomeUnknownError } from "../http.ts";
import { type HttpEvent, type HttpResult, lambdaHttpOnce } from "../lambda.ts";
import type { Claim } from "../run/claim.ts";
import { createTestingOnceward } from "../testing.ts";

const context = { getRemainingTimeInMillis: () => 60_000 };
const options = { namespace: "charges", caller: () => "a-1" };
const headers = { "idempotency-key": "order-1" };

/** An event of payload 1.0, which load balancers send, too. */
const v1 = (more: object = {}) => ({ httpMethod: "POST", path: "/charges", headers, body: "{}", ...more });
const v2 = ({
  method = "POST",
  ...more
}: {
  readonly method?: string;
  readonly rawQueryString?: string;
} = {}) => ({
  ...{ version: "2.0", routeKey: "$default", rawPath: "/charges", rawQueryString: "", headers, body: "{}" },
  ...{ requestContext: { http: { method } }, ...more },
});

type Fn = (event: HttpEvent, of: object, claim: Claim | undefined) => HttpResult;

function begin(fn: Fn, policy = {}) {
  const testing = createTestingOnceward({ policy });
  onTestFinished(() => testing[Symbol.asyncDispose]());
  const counted = vi.fn(fn);
  const handler = lambdaHttpOnce(testing.onceward, options, counted);
  return { testing, fn: counted, send: (event: HttpEvent) => handler(structuredClone(event), context) };
}

const charged = () => ({ statusCode: 201, body: "charged" });

test.each<[what: string, first: HttpEvent, other: HttpEvent]>([
  ["another query of payload 2.0", v2({ rawQueryString: "a=1" }), v2({ rawQueryString: "a=2" })],
  [
    "another value of a repeated parameter",
    v1({ queryStringParameters: { a: "2" }, multiValueQueryStringParameters: { a: ["1", "2"] } }),
    v1({ queryStringParameters: { a: "2" }, multiValueQueryStringParameters: { a: ["3", "2"] } }),
  ],
  [
    "another path of API Gateway's route",
    v1({ resource: "/charges/{id}", path: "/charges/1" }),
    v1({ resource: "/charges/{id}", path: "/charges/2" }),
  ],
])("a request with %s is another one with the same key", async (_, first, other) => {
  const { send, fn } = begin(charged);
  expect([(await send(first)).statusCode, (await send(other)).statusCode]).toEqual([201, 422]);
  expect(fn).toHaveBeenCalledOnce();
});

test("each method has keys of its own, and one that needs no key passes without a claim", async () => {
  const { send, fn } = begin(charged);
  for (const method of ["POST", "PATCH", "GET", "GET"]) await send(v2({ method }));
  expect(fn.mock.calls.map(([, , claim]) => claim?.attempt)).toEqual([1, 1, undefined, undefined]);
});

test("two keys in one request are refused", async () => {
  const { send, fn } = begin(charged);
  const twice = { headers, multiValueHeaders: { "Idempotency-Key": ["order-1", "order-2"] } };
  expect((await send(v1(twice))).statusCode).toBe(400);
  expect(fn).not.toHaveBeenCalled();
});

test("lists of a result's values replace its single ones, and no cookie is replayed", async () => {
  const { send } = begin(() => ({
    ...charged(),
    headers: { Location: "/single", "Set-Cookie": "session=secret" },
    multiValueHeaders: { location: ["/listed"], Vary: ["Accept", "Origin"], "set-cookie": ["theme=dark"] },
  }));
  await send(v1());
  const { headers: replayed } = await send(v1());
  expect(replayed).toEqual({ location: "/listed", vary: "Accept, Origin", "idempotency-replayed": "true" });
});

test("a body of text is replayed as it was, also with a byte order mark", async () => {
  const { send } = begin(() => ({ statusCode: 200, body: "\uFEFFcharged" }));
  await send(v2());
  expect(await send(v2())).toMatchObject({ body: "\uFEFFcharged", isBase64Encoded: false });
});

test("a compressed body is decoded for a client that does not accept its coding", async () => {
  const { send } = begin(() => ({
    ...{ statusCode: 200, headers: { "content-encoding": "gzip" } },
    ...{ body: gzipSync("charged").toString("base64"), isBase64Encoded: true },
  }));
  const accepting = v1({ headers: { ...headers, "Accept-Encoding": "gzip" } });
  await send(accepting);
  const replayed = await send(accepting);
  expect(replayed.headers).toMatchObject({ "content-encoding": "gzip" });
  expect(Buffer.from(replayed.body ?? "", "base64").equals(gzipSync("charged"))).toBe(true);
  const refusing = v1({ headers: { ...headers, "Accept-Encoding": "identity" } });
  expect(await send(refusing)).toMatchObject({ body: "charged", isBase64Encoded: false });
});

test("the first answer has the headers of the guard besides its own", async () => {
  await using testing = createTestingOnceward();
  const own = { statusCode: 201, headers: { "x-own": "yes" }, multiValueHeaders: { "x-list": ["yes"] } };
  const handler = lambdaHttpOnce(testing.onceward, { ...options, profile: "acp" }, () => own);
  const echoed = { "idempotency-key": "order-1" };
  expect((await handler(v2(), context)).headers).toEqual({ ...own.headers, ...echoed });
  const lists = v1({ headers: null, multiValueHeaders: { "idempotency-key": ["order-2"] } });
  expect((await handler(lists, context)).multiValueHeaders).toEqual({
    ...own.multiValueHeaders,
    "idempotency-key": ["order-2"],
  });
});

test("an event that is guarded twice is handled once, under the first guard's claim", async () => {
  await using testing = createTestingOnceward();
  const fn = vi.fn((_event: HttpEvent, _context: object, _claim: Claim | undefined) => charged());
  const inner = lambdaHttpOnce(testing.onceward, options, fn);
  const outer = lambdaHttpOnce(testing.onceward, options, (event, of) => inner(event, of));
  expect((await outer(v2(), context)).statusCode).toBe(201);
  expect(fn.mock.calls.map(([, , claim]) => claim?.attempt)).toEqual([1]);
});

test("a function that can't know whether it had its effect keeps its claim", async () => {
  const fail = () => {
    throw new OutcomeUnknownError("the bank timed out");
  };
  const { send, fn, testing } = begin(fail, { onLeaseExpiry: "HOLD" });
  const problems: string[] = [];
  for (const afterMs of [0, 0, 30_000]) {
    testing.clock.advance(afterMs);
    const { statusCode, body = "" } = await send(v2());
    problems.push(`${statusCode} ${JSON.parse(body).type.replace("urn:onceward:problem:", "")}`);
  }
  expect(problems).toEqual(["409 ambiguous", "409 in-progress", "409 ambiguous"]);
  expect(fn).toHaveBeenCalledOnce();
});
