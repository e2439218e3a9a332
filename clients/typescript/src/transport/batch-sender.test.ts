import {
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type ServiceImpl,
} from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason } from "../gen/onceward/v1/errors_pb.ts";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { Calls } from "../run/calls.ts";

/** What a Batch is answered with, as scripted; the service's behaviour is tested against the service. */
function callsTo(service: Partial<ServiceImpl<typeof IdempotencyService>>): Calls {
  const transport = createRouterTransport(({ service: serve }) => serve(IdempotencyService, service));
  return new Calls(createClient(IdempotencyService, transport));
}

const name = { namespace: "charges", key: "order-1" };

test("a call whose reply did not fit into the batch is repeated alone", async () => {
  const error = { code: Code.ResourceExhausted, reason: ErrorReason.RESPONSE_TOO_LARGE };
  const calls = callsTo({
    batch: () => ({ items: [{ response: { case: "error", value: error } }] }),
    lookup: ({ key }) => ({ record: { key } }),
  });
  expect((await calls.lookup(name)).record?.key).toBe("order-1");
});

test("an invalid item fails alone", async () => {
  const calls = callsTo({
    batch: () => {
      throw new ConnectError("unparsable", Code.InvalidArgument);
    },
    lookup: ({ key }) => {
      if (key === "bad") throw new ConnectError("unparsable", Code.InvalidArgument);
      return { record: { key } };
    },
  });
  const [good, bad] = await Promise.allSettled([calls.lookup(name), calls.lookup({ ...name, key: "bad" })]);
  expect(good).toMatchObject({ status: "fulfilled", value: { record: { key: "order-1" } } });
  expect(bad).toMatchObject({ status: "rejected", reason: { code: Code.InvalidArgument } });
});

test("the calls of a batch that is too large for a proxy are made a few at a time", async () => {
  let [open, most] = [0, 0];
  const calls = callsTo({
    batch: () => {
      throw new ConnectError("HTTP 413", Code.ResourceExhausted);
    },
    async lookup({ key }) {
      most = Math.max(most, ++open);
      await new Promise(setImmediate);
      open--;
      return { record: { key } };
    },
  });
  const keys = Array.from({ length: 200 }, (_, index) => `order-${index}`);
  const replies = await Promise.all(keys.map((key) => calls.lookup({ ...name, key })));
  expect(replies.map(({ record }) => record?.key)).toEqual(keys);
  // Four batches are in flight at once, each with sixteen of its calls.
  expect(most).toBeLessThanOrEqual(64);
});

test("an item that can't be encoded fails alone", async () => {
  const calls = callsTo({ batch: () => ({ items: [] }), release: () => ({}), lookup: () => ({}) });
  const noInt64 = 2n ** 63n;
  const [good, bad] = await Promise.allSettled([
    calls.lookup(name),
    calls.release({ ...name, fencingToken: noInt64 }),
  ]);
  expect(good).toMatchObject({ status: "fulfilled" });
  expect(bad).toMatchObject({ status: "rejected", reason: { name: "OncewardError", reason: "NO_ANSWER" } });
});

test("an error of the whole batch fails every item, and no call is repeated", async () => {
  const calls = callsTo({
    batch: () => {
      throw new ConnectError("no credential", Code.Unauthenticated);
    },
    lookup: () => {
      throw new Error("asked again");
    },
  });
  const settled = await Promise.allSettled([calls.lookup(name), calls.lookup(name)]);
  expect(settled).toMatchObject([
    { status: "rejected", reason: { code: Code.Unauthenticated } },
    { status: "rejected", reason: { code: Code.Unauthenticated } },
  ]);
});

test("a batch that is answered with too few items leaves no call without an answer", async () => {
  const calls = callsTo({ batch: () => ({ items: [] }) });
  await expect(calls.lookup(name)).rejects.toMatchObject({ reason: "INTERNAL" });
});

test("a call that gets another call's answer fails, and is not repeated", async () => {
  const calls = callsTo({ batch: () => ({ items: [{ response: { case: "release", value: {} } }, {}] }) });
  const settled = await Promise.allSettled([calls.lookup(name), calls.lookup(name)]);
  expect(settled).toMatchObject([
    { reason: { reason: "INTERNAL", message: "A lookup was answered as if it were release." } },
    { reason: { reason: "INTERNAL", message: "A lookup was answered as if it were a call unknown here." } },
  ]);
});
