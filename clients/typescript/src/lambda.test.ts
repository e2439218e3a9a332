import { describe, expect, test, vi } from "vitest";
import {
  describeConsumerAdapter,
  type SuiteConsumerFactory,
} from "../../../test/support/adapters/consumer-suite.ts";
import { Record_State } from "./gen/onceward/v1/record_pb.ts";
import { createOnceward, KeyTooOldError } from "./index.ts";
import {
  type DurableContext,
  type HttpEvent,
  type HttpResult,
  KEY_HEADER,
  type LambdaContext,
  lambdaHttpOnce,
  lambdaOnce,
  type SqsRecord,
  sqsBatchOnce,
} from "./lambda.ts";
import { createTestingOnceward } from "./testing.ts";

interface Message extends SqsRecord {
  readonly body: string;
}

const STANDARD = "arn:aws:sqs:eu-central-1:123456789012:charges";
const FIFO = `${STANDARD}.fifo`;
const namespace = "charges";
const context = (remainingMs = 60_000) => ({ getRemainingTimeInMillis: () => remainingMs });
const quiet = { namespace, deadLetter: "skip" as const, tooOld: "skip" as const, onDelivery: () => {} };

function message(id: string, key: string | undefined = id, group?: string): Message {
  return {
    messageId: `message-${id}`,
    receiptHandle: `receipt-${id}`,
    body: id,
    eventSourceARN: group === undefined ? STANDARD : FIFO,
    attributes: { MessageGroupId: group, SentTimestamp: `${Date.now()}` },
    messageAttributes: key === undefined ? {} : { [KEY_HEADER]: { stringValue: key } },
  };
}

function failed(...ids: string[]) {
  return { batchItemFailures: ids.map((id) => ({ itemIdentifier: `message-${id}` })) };
}

describe("a batch of SQS", () => {
  const newConsumer: SuiteConsumerFactory = (onceward, options, fn) => {
    const redelivered = { ...quiet, ...options, redeliverAfterMs: 10 };
    const handler = sqsBatchOnce(onceward, redelivered, ({ body }: Message, claim) => fn(body, claim));
    return {
      async deliver({ key, body }) {
        const attributes = key === undefined ? {} : { [KEY_HEADER]: { stringValue: key } };
        const Records = [{ ...message("m"), body, messageAttributes: attributes }];
        return (await handler({ Records }, context())).batchItemFailures.length === 0 ? "settled" : "kept";
      },
    };
  };
  describeConsumerAdapter(test, newConsumer);

  test("only the messages that are not settled are returned, in the batch's order", async () => {
    await using testing = createTestingOnceward();
    await testing.onceward.api.claim({ namespace, key: "held", owner: "elsewhere" });
    const handler = sqsBatchOnce(testing.onceward, quiet, ({ body }: Message) => {
      if (body === "throws") throw new Error("the provider is down");
    });
    const Records = ["throws", "a", "held", "b"].map((id) => message(id));
    expect(await handler({ Records }, context())).toEqual(failed("throws", "held"));
  });

  test("a key without a time gets its message's; a late message goes to the dead letters", async () => {
    await using testing = createTestingOnceward({ policy: { lateKeys: "REQUIRE_TIME", keyRetentionS: 60 } });
    const ran: string[] = [];
    const options = { ...quiet, tooOld: "broker" as const };
    const handler = sqsBatchOnce(testing.onceward, options, ({ body }: Message) => ran.push(body));
    const late = { ...message("late"), attributes: { SentTimestamp: `${Date.now() - 120_000}` } };
    expect(await handler({ Records: [message("a"), late] }, context())).toEqual(failed("late"));
    expect(ran).toEqual(["a"]);
  });

  test("at most `concurrency` messages are handled at once, and all are handled", async () => {
    await using testing = createTestingOnceward();
    let [running, most, ran] = [0, 0, 0];
    const handler = sqsBatchOnce(testing.onceward, { ...quiet, concurrency: 3 }, async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      ran++;
    });
    const Records = Array.from({ length: 12 }, (_, index) => message(`${index}`));
    expect(await handler({ Records }, context())).toEqual(failed());
    expect([most, ran]).toEqual([3, 12]);
    expect(() => sqsBatchOnce(testing.onceward, { ...quiet, concurrency: 0 }, () => {})).toThrow(
      "concurrency must be a whole number, 1-1000",
    );
  });

  test("after a message of a FIFO group that stays, the rest of the group stays and does not run", async () => {
    await using testing = createTestingOnceward();
    const ran: string[] = [];
    const handler = sqsBatchOnce(testing.onceward, quiet, ({ body }: Message) => {
      ran.push(body);
      if (body === "a2") throw new Error("the provider is down");
    });
    const ids = ["a1", "b1", "a2", "a3", "b2"];
    const Records = ids.map((id) => message(id, id, id.slice(0, 1)));
    expect(await handler({ Records }, context())).toEqual(failed("a2", "a3"));
    expect(ran.filter((id) => id.startsWith("a"))).toEqual(["a1", "a2"]);
    expect(ran.filter((id) => id.startsWith("b"))).toEqual(["b1", "b2"]);
  });

  test("in an outage, the batch is returned shortly before the timeout, and nothing runs", async () => {
    await using testing = createTestingOnceward();
    testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
    const fn = vi.fn();
    const options = { ...quiet, timeoutMs: 20, redeliverAfterMs: 20, concurrency: 1 };
    const handler = sqsBatchOnce(testing.onceward, options, fn);
    const Records = [message("a"), message("b")];
    expect(await handler({ Records }, context(700))).toEqual(failed("a", "b"));
    expect(fn).not.toHaveBeenCalled();
  });

  test("a message waits for a service that is back before the timeout", async () => {
    await using testing = createTestingOnceward();
    const fn = vi.fn();
    let isBack = false;
    testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
    const options = {
      ...{ ...quiet, timeoutMs: 20, redeliverAfterMs: 20 },
      // After the first delivery that failed.
      onDelivery: () => {
        isBack = true;
        testing.faults.clear();
      },
    };
    const handler = sqsBatchOnce(testing.onceward, options, fn);
    expect(await handler({ Records: [message("a")] }, context())).toEqual(failed());
    expect(isBack).toBe(true);
    expect(fn).toHaveBeenCalledOnce();
  });
});

describe("a handler", () => {
  interface Order {
    readonly id: string;
    readonly cents: number;
  }
  const options = { namespace, key: ({ id }: Order) => id, fingerprint: (order: Order) => order };

  test("runs once per key of the event, a repeat gets the value, another event is refused", async () => {
    await using testing = createTestingOnceward();
    const fn = vi.fn(({ cents }: Order) => ({ cents, at: new Date(0) }));
    const handler = lambdaOnce(testing.onceward, options, fn);
    const value: { cents: number; at: string } = await handler({ id: "o-1", cents: 100 }, context());
    expect(value).toEqual({ cents: 100, at: "1970-01-01T00:00:00.000Z" });
    expect(await handler({ id: "o-1", cents: 100 }, context())).toEqual(value);
    await expect(handler({ id: "o-1", cents: 200 }, context())).rejects.toMatchObject({
      reason: "FINGERPRINT_MISMATCH",
    });
    expect(fn).toHaveBeenCalledOnce();
  });

  test("has the time that keyCreatedAt returns", async () => {
    await using testing = createTestingOnceward({ policy: { lateKeys: "REQUIRE_TIME" } });
    const timed = { ...options, keyCreatedAt: ({ cents }: Order) => new Date(cents) };
    const handler = lambdaOnce(testing.onceward, timed, () => "charged");
    await expect(handler({ id: "o-1", cents: 100 }, context())).rejects.toThrow(KeyTooOldError);
    expect(await handler({ id: "o-1", cents: Date.now() }, context())).toBe("charged");
    const wrong = { ...options, keyCreatedAt: Date.now() as never };
    expect(() => lambdaOnce(testing.onceward, wrong, vi.fn())).toThrow(/^keyCreatedAt must be a function/);
  });

  test("has the options of its runs, which are checked when it is made", async () => {
    await using testing = createTestingOnceward();
    await lambdaOnce(
      testing.onceward,
      { ...options, owner: "billing" },
      () => "charged",
    )({ id: "o-1", cents: 100 }, context());
    expect(testing.records()).toMatchObject([{ owner: "billing" }]);
    const { key: _, ...keyless } = options;
    expect(() => lambdaOnce(testing.onceward, keyless as never, vi.fn())).toThrow("key must be a function");
    const wrong = { ...options, namespace: "Charges" };
    expect(() => lambdaOnce(testing.onceward, wrong, vi.fn())).toThrow("namespace");
  });

  test("waits for another holder no longer than the invocation lasts", async () => {
    await using testing = createTestingOnceward();
    await testing.onceward.api.claim({ namespace, key: "o-1", owner: "elsewhere" });
    const handler = lambdaOnce(testing.onceward, { namespace, key: ({ id }: Order) => id }, vi.fn());
    await expect(handler({ id: "o-1", cents: 100 }, context(510))).rejects.toMatchObject({
      reason: "ABORTED",
    });
  });

  test("a claim whose answer comes after the timeout is released before the handler settles", async () => {
    await using testing = createTestingOnceward();
    const arrival = Promise.withResolvers<void>();
    const sent = vi.fn();
    const onceward = createOnceward({
      transport: {
        stream: testing.transport.stream,
        async unary(...call) {
          const answer = await testing.transport.unary(...call);
          sent();
          if (sent.mock.calls.length === 1) await arrival.promise;
          return answer;
        },
      },
    });
    const handler = lambdaOnce(onceward, options, vi.fn());
    const handled = handler({ id: "o-1", cents: 100 }, context(520));
    const ended = expect(handled).rejects.toMatchObject({ reason: "ABORTED" });
    await vi.waitUntil(() => [...onceward.calls.background].length === 1, 30_000);
    arrival.resolve();
    await ended;
    expect(testing.records()).toMatchObject([{ state: Record_State.RELEASED }]);
    await onceward.close();
  });

  test("near the invocation's timeout aborts the signal; its error leaves the claim to the policy", async () => {
    await using testing = createTestingOnceward();
    const fn = vi
      .fn((_order: Order, _context: unknown, _claim: { signal: AbortSignal }): unknown => "charged")
      .mockImplementationOnce((_order, _context, { signal }) => {
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      });
    const handler = lambdaOnce(testing.onceward, options, fn);
    const order = { id: "o-1", cents: 100 };
    await expect(handler(order, context(600))).rejects.toMatchObject({ reason: "ABORTED" });
    await expect(handler(order, context(600))).rejects.toMatchObject({ reason: "ABORTED" });
    testing.clock.advance(30_000);
    expect(await handler(order, context())).toBe("charged");
    expect(fn).toHaveBeenCalledTimes(2);
  });
});

describe("a durable execution", () => {
  const durable = (arn: string) => ({
    lambdaContext: context(),
    executionContext: { durableExecutionArn: arn },
  });
  const arn = `arn:aws:lambda:eu-central-1:123456789012:function:charge:1/durable-execution/${"x".repeat(120)}/a`;
  const options = { namespace, key: (id: string) => id, onInProgress: "throw" as const };

  test.each(["RECLAIM", "HOLD"] as const)(
    "continues its claim on each replay under %s; another execution is a duplicate",
    async (onLeaseExpiry) => {
      await using testing = createTestingOnceward({ policy: { onLeaseExpiry } });
      const suspended = Promise.withResolvers<string>();
      const charge = (_id: string, _context: DurableContext): Promise<string> | string => "charged";
      const fn = vi.fn(charge).mockReturnValueOnce(suspended.promise);
      const handler = lambdaOnce(testing.onceward, options, fn);
      // A suspended invocation never ends: its promise stays pending, and its process is frozen.
      const frozen = Promise.allSettled([handler("o-1", durable(arn))]);
      await vi.waitUntil(() => fn.mock.calls.length === 1);
      await expect(handler("o-1", durable(`${arn}-2`))).rejects.toMatchObject({ reason: "IN_PROGRESS" });
      if (onLeaseExpiry === "HOLD") {
        testing.clock.advance(86_000_000);
        await expect(handler("o-1", durable(`${arn}-2`))).rejects.toMatchObject({ reason: "AMBIGUOUS" });
      }
      expect(await handler("o-1", durable(arn))).toBe("charged");
      expect(await handler("o-1", durable(`${arn}-2`))).toBe("charged");
      expect(fn).toHaveBeenCalledTimes(2);
      suspended.resolve("late");
      await frozen;
    },
  );

  test("waits for another execution no longer than its invocation lasts", async () => {
    await using testing = createTestingOnceward();
    await testing.onceward.api.claim({ namespace, key: "o-1", owner: "elsewhere" });
    const handler = lambdaOnce(testing.onceward, { namespace, key: (id: string) => id }, vi.fn());
    const ending = { ...durable(arn), lambdaContext: context(510) };
    await expect(handler("o-1", ending)).rejects.toMatchObject({ reason: "ABORTED" });
  });
});

describe("an HTTP request", () => {
  const body = '{"amount":1}';
  const headers = { "Idempotency-Key": '"order-1"', "x-account": "a-1" };
  const v2 = (path: string, routeKey: string) => ({
    ...{ version: "2.0", routeKey, rawPath: path, rawQueryString: "" },
    ...{ headers, body, requestContext: { http: { method: "POST" } } },
  });
  const balancer = { httpMethod: "POST", path: "/charges", body, requestContext: { elb: {} } };
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  const EVENTS: Readonly<Record<string, HttpEvent>> = {
    "API Gateway, payload 1.0": { ...balancer, resource: "/charges", headers, multiValueHeaders: lists },
    "API Gateway, payload 2.0": v2("/charges", "POST /charges"),
    "a function URL": v2("/charges", "$default"),
    "a load balancer": { ...balancer, headers },
    "a load balancer with lists of values": { ...balancer, multiValueHeaders: lists },
  };
  const callerOf = ({ headers: single, ...event }: HttpEvent) =>
    single?.["x-account"] ??
    ("multiValueHeaders" in event ? event.multiValueHeaders?.["x-account"]?.[0] : "") ??
    "";
  const options = { namespace, caller: callerOf };
  /** Each invocation has an event of its own. */
  const invoking =
    (handler: (event: HttpEvent, of: LambdaContext) => Promise<HttpResult>) =>
    (event: HttpEvent, of: LambdaContext): Promise<HttpResult> =>
      handler(structuredClone(event), of);
  /** Returns the headers of a result, from wherever its source reads them. */
  const headersOf = (event: HttpEvent, { headers: single, multiValueHeaders = {} }: HttpResult) =>
    event.headers == null
      ? Object.fromEntries(Object.entries(multiValueHeaders).map(([name, all]) => [name, all.join()]))
      : single;

  test.each(Object.entries(EVENTS))("of %s has the guard of every HTTP handler", async (_, event) => {
    await using testing = createTestingOnceward();
    const bytes = Buffer.from([0xff, 0x00]).toString("base64");
    const charged: HttpResult = {
      ...{
        statusCode: 201,
        headers: { "Content-Type": "application/pdf" },
        body: bytes,
        isBase64Encoded: true,
      },
      cookies: ["session=secret"],
    };
    const fn = vi.fn(() => charged).mockReturnValueOnce({ statusCode: 500 });
    const send = invoking(lambdaHttpOnce(testing.onceward, { ...options, profile: "acp" }, fn));
    expect((await send(event, context())).statusCode).toBe(500);
    const first = await send(event, context());
    expect(first).toMatchObject({ statusCode: 201, body: bytes, cookies: charged.cookies });
    const replay = await send(event, context());
    expect(replay).toMatchObject({ statusCode: 201, body: bytes, isBase64Encoded: true });
    expect(replay).not.toHaveProperty("cookies");
    expect(headersOf(event, replay)).toEqual({
      "content-type": "application/pdf",
      "idempotent-replayed": "true",
      "idempotency-key": '"order-1"',
    });
    const other = await send(
      { ...event, body: Buffer.from('{"amount":2}').toString("base64"), isBase64Encoded: true },
      context(),
    );
    expect([other.statusCode, JSON.parse(other.body ?? "")]).toMatchObject([
      422,
      { code: "idempotency_conflict" },
    ]);
    const same = await send(
      { ...event, body: Buffer.from(body).toString("base64"), isBase64Encoded: true },
      context(),
    );
    expect(same.statusCode).toBe(201);
    expect(fn).toHaveBeenCalledTimes(2);
  });

  test("counts by its route, or by its path where the route matches any; its query in any order", async () => {
    await using testing = createTestingOnceward();
    const send = invoking(lambdaHttpOnce(testing.onceward, options, () => ({ statusCode: 200 })));
    const statuses = async (...events: HttpEvent[]) => {
      const answers: number[] = [];
      for (const event of events) answers.push((await send(event, context())).statusCode);
      return answers;
    };
    const route = "POST /charges/{id}";
    expect(await statuses(v2("/charges/1", route), v2("/charges/2", route))).toEqual([200, 422]);
    expect(await statuses(v2("/a", "$default"), v2("/b", "$default"))).toEqual([200, 200]);
    const proxied = (path: string, queryStringParameters = {}) =>
      ({ ...balancer, path, resource: "/{proxy+}", headers, queryStringParameters }) as const;
    expect(await statuses(proxied("/c"), proxied("/d"))).toEqual([200, 200]);
    const queries = [
      { a: "1", b: "2" },
      { b: "2", a: "1" },
      { a: "1", b: "3" },
    ];
    expect(await statuses(...queries.map((query) => proxied("/e", query)))).toEqual([200, 200, 422]);
  });

  test("that waits gets 503 before the timeout; a result without a status is an error", async () => {
    await using testing = createTestingOnceward();
    const held = Promise.withResolvers<HttpResult>();
    const fn = vi.fn((): Promise<HttpResult> | HttpResult => held.promise);
    const send = invoking(lambdaHttpOnce(testing.onceward, { ...options, waitMs: 30_000 }, fn));
    const event = v2("/charges", "$default");
    const first = send(event, context());
    expect((await send(event, context(510))).statusCode).toBe(503);
    held.resolve({ statusCode: 201 });
    expect((await first).statusCode).toBe(201);
    for (const wrong of ["charged", { body: "charged" }]) {
      fn.mockReturnValueOnce(wrong as never);
      const sent = send(v2("/other", "$default"), context());
      await expect(sent).rejects.toThrow("must return an object with a statusCode");
    }
    await expect(send({} as never, context())).rejects.toThrow("not an HTTP request");
  });
});
