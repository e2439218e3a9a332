import { createServer } from "node:http";
import { create } from "@bufbuild/protobuf";
import {
  type Client,
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
} from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { type Claim, createOnceward, type Onceward } from "@onceward/client";
import { ErrorInfoSchema, IdempotencyService, RetryInfoSchema } from "@onceward/client/proto";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  formatIdempotencyKey,
  type IdempotentImpl,
  idempotencyKeys,
  idempotentUnary,
  type RpcOptions,
  type UnaryCall,
} from "../../../clients/typescript/src/connect.ts";
import { deriveKey } from "../../../clients/typescript/src/keys/keys.ts";
import { crashAndRepeat, withinOrder } from "../../support/calls/orders.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { listen } from "../http/listen.ts";
import { ChargeSchema, Charges } from "./test-service.ts";

const { database, server } = useServer();

type Effect = IdempotentImpl<typeof ChargeSchema, typeof ChargeSchema>;
type Options = Partial<RpcOptions<UnaryCall<typeof ChargeSchema>>>;

/**
 * Starts a Connect server whose handlers are guarded by a real service, and a client; closes both after the
 * test.
 */
async function begin(effect: Effect, options: Options = {}, clientInterceptors: Interceptor[] = []) {
  const tenant = await createTenant(database);
  const onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey: tenant.apiKey });
  return await beginWith(onceward, effect, options, clientInterceptors);
}

async function beginWith(
  onceward: Onceward,
  effect: Effect,
  options: Options,
  clientInterceptors: Interceptor[],
): Promise<Client<typeof Charges>> {
  const all: RpcOptions<UnaryCall<typeof ChargeSchema>> = {
    namespace: "charges",
    caller: ({ context }) => context.requestHeader.get("x-account") ?? "a-1",
    ...options,
  };
  const adapter = connectNodeAdapter({
    routes(router) {
      router.service(Charges, { create: idempotentUnary(onceward, Charges.method.create, all, effect) });
    },
  });
  const app = await listen(createServer(adapter));
  onTestFinished(async () => {
    await app.close();
    await onceward.close();
  });
  const baseUrl = `http://127.0.0.1:${app.port}`;
  return createClient(
    Charges,
    createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: clientInterceptors }),
  );
}

const KEY = { "idempotency-key": '"order-1"' };
const charged = async () => ({ id: "ch_1", labels: { a: "1" } });

async function failureOf(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ConnectError)) throw new Error("it did not fail");
  const [info] = error.findDetails(ErrorInfoSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  return {
    code: error.code,
    message: error.rawMessage,
    reason: info?.reason,
    retries: retry !== undefined,
    replayed: error.metadata.get("idempotency-replayed"),
  };
}

test("the first call runs, and a repeat gets its message, marked", async () => {
  const effect = vi.fn(charged);
  const client = await begin(effect);
  const replayed: (string | null)[] = [];
  const onHeader = (headers: Headers) => replayed.push(headers.get("idempotency-replayed"));
  const message = create(ChargeSchema, { id: "ch_1", labels: { a: "1" } });
  for (const _ of [1, 2]) expect(await client.create({}, { headers: KEY, onHeader })).toEqual(message);
  expect(replayed).toEqual([null, "true"]);
  expect(effect).toHaveBeenCalledOnce();
});

test("AIP-155's request_id is a key, too", async () => {
  const effect = vi.fn(charged);
  const client = await begin(effect);
  await client.create({ requestId: "8e03978e-40d5-43e8-bc93-6894a57f9324" });
  await client.create({ requestId: "8e03978e-40d5-43e8-bc93-6894a57f9324" });
  expect(effect).toHaveBeenCalledOnce();
});

test("the implementation gets its claim", async () => {
  const claims: (Claim | undefined)[] = [];
  const client = await begin(
    (_request, _context, claim) => {
      claims.push(claim);
      return {};
    },
    { required: false },
  );
  await client.create({}, { headers: KEY });
  await client.create({});
  expect(claims).toMatchObject([{ namespace: "charges", attempt: 1 }, undefined]);
});

test("ten concurrent calls that wait have one effect and one answer", async () => {
  const effect = vi.fn(charged);
  const client = await begin(effect, { waitMs: 10_000 });
  const answers = await Promise.all(Array.from({ length: 10 }, () => client.create({}, { headers: KEY })));
  expect(new Set(answers.map(({ id }) => id))).toEqual(new Set(["ch_1"]));
  expect(effect).toHaveBeenCalledOnce();
});

test("a call while the first is in progress is refused, with a retry delay", async () => {
  const handler = Promise.withResolvers<object>();
  const begun = Promise.withResolvers<void>();
  const client = await begin(() => {
    begun.resolve();
    return handler.promise;
  });
  const first = client.create({}, { headers: KEY });
  await begun.promise;
  expect(await failureOf(client.create({}, { headers: KEY }))).toMatchObject({
    code: Code.Aborted,
    reason: "IN_PROGRESS",
    retries: true,
  });
  handler.resolve({});
  await first;
});

test("another request with the same key is refused, but a map in another order is not", async () => {
  const effect = vi.fn(charged);
  const client = await begin(effect);
  await client.create({ labels: { a: "1", b: "2" } }, { headers: KEY });
  await client.create({ labels: { b: "2", a: "1" } }, { headers: KEY });
  expect(await failureOf(client.create({ labels: { a: "2" } }, { headers: KEY }))).toMatchObject({
    code: Code.FailedPrecondition,
    reason: "FINGERPRINT_MISMATCH",
  });
  expect(effect).toHaveBeenCalledOnce();
});

test.each([{}, { "idempotency-key": '"order' }])("a call with the headers %j is refused", async (headers) => {
  const effect = vi.fn(charged);
  const client = await begin(effect);
  expect(await failureOf(client.create({}, { headers }))).toMatchObject({ code: Code.InvalidArgument });
  expect(effect).not.toHaveBeenCalled();
});

test("a terminal failure is replayed with its details", async () => {
  const effect = vi.fn<Effect>(async () => {
    const info = { desc: ErrorInfoSchema, value: { reason: "CARD_DECLINED", domain: "test" } };
    throw new ConnectError("card declined", Code.FailedPrecondition, undefined, [info]);
  });
  const client = await begin(effect);
  const declined = { code: Code.FailedPrecondition, message: "card declined", reason: "CARD_DECLINED" };
  expect(await failureOf(client.create({}, { headers: KEY }))).toMatchObject({ ...declined, replayed: null });
  expect(await failureOf(client.create({}, { headers: KEY }))).toMatchObject({
    ...declined,
    replayed: "true",
  });
  expect(effect).toHaveBeenCalledOnce();
});

test.each([
  [
    "a failure worth another attempt",
    new ConnectError("busy", Code.ResourceExhausted),
    Code.ResourceExhausted,
  ],
  ["an error without a code", new Error("a bug"), Code.Internal],
])("%s releases the claim", async (_, thrown, code) => {
  const effect = vi.fn<Effect>(charged).mockRejectedValueOnce(thrown);
  const client = await begin(effect);
  expect(await failureOf(client.create({}, { headers: KEY }))).toMatchObject({ code });
  expect((await client.create({}, { headers: KEY })).id).toBe("ch_1");
  expect(effect).toHaveBeenCalledTimes(2);
});

test("if the service is unreachable, nothing runs", async () => {
  const effect = vi.fn(charged);
  const onceward = createOnceward({ address: "http://127.0.0.1:1", apiKey: "none", timeoutMs: 100 });
  const client = await beginWith(onceward, effect, {}, []);
  expect(await failureOf(client.create({}, { headers: KEY }))).toMatchObject({
    code: Code.Unavailable,
    retries: true,
  });
  expect(effect).not.toHaveBeenCalled();
});

test("callers don't see errors of the guard itself", async () => {
  const apiKey = `ow_${"0".repeat(16)}_${"0".repeat(43)}`;
  const onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
  const client = await beginWith(onceward, charged, {}, []);
  expect(await failureOf(client.create({}, { headers: KEY }))).toMatchObject({
    code: Code.Internal,
    message: "The call could not be guarded.",
  });
});

test("callers with the same key don't see each other", async () => {
  const effect = vi.fn(charged);
  const client = await begin(effect);
  for (const account of ["a-1", "a-2"])
    await client.create({}, { headers: { ...KEY, "x-account": account } });
  expect(effect).toHaveBeenCalledTimes(2);
});

/** Returns a client of a guarded server with interceptors, and the keys that it has sent. */
async function beginKeyed(...interceptors: Interceptor[]) {
  const keys: (string | null)[] = [];
  const effect = vi.fn(charged);
  const note: Interceptor = (next) => (request) => {
    keys.push(request.header.get("idempotency-key"));
    return next(request);
  };
  return { keys, effect, note, client: await begin(effect, { required: false }, [...interceptors, note]) };
}

test("after a crash of its caller a call has the same key, and one effect", async () => {
  const { keys, effect, client } = await beginKeyed(idempotencyKeys());
  await crashAndRepeat(async () => (await client.create({})).id);
  const key = formatIdempotencyKey(deriveKey("orders", "order-1", "/test.v1.Charges/Create"));
  expect(keys).toEqual([key, key]);
  expect(effect).toHaveBeenCalledOnce();
});

test("a call has the key of its name, its own, or none: without a claim, or of a safe method", async () => {
  const named = idempotencyKeys({ name: ({ message }) => message.$typeName });
  const { keys, note, client } = await beginKeyed(named);
  const safe = createRouterTransport(({ service }) => service(IdempotencyService, { lookup: () => ({}) }), {
    transport: { interceptors: [named, note] },
  });
  await client.create({});
  await withinOrder(async () => {
    await client.create({});
    await client.create({}, { headers: KEY });
    await createClient(IdempotencyService, safe).lookup({});
  });
  const derived = formatIdempotencyKey(deriveKey("orders", "order-1", "test.v1.Charge"));
  expect(keys).toEqual([null, derived, '"order-1"', null]);
});

test("a new key of a call without a claim is kept by its retries", async () => {
  const twice: Interceptor = (next) => async (request) => {
    await next(request);
    return await next(request);
  };
  const { keys, effect, client } = await beginKeyed(idempotencyKeys({ withoutClaim: "new key" }), twice);
  await client.create({});
  await client.create({});
  expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 2, 2]);
  expect(effect).toHaveBeenCalledTimes(2);
});

test.each([
  ["nothing", undefined],
  ["a lone surrogate", { text: "\ud800" }],
])("a call whose fingerprint is of %s is refused, and nothing runs", async (_, value) => {
  const effect = vi.fn(charged);
  const client = await begin(effect, { fingerprint: () => value });
  expect(await failureOf(client.create({}, { headers: KEY }))).toMatchObject({
    code: Code.InvalidArgument,
    reason: "INVALID_REQUEST",
  });
  expect(effect).not.toHaveBeenCalled();
});

test("a call whose fingerprint is of a type without one is the server's error, and nothing runs", async () => {
  const effect = vi.fn(charged);
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warn.mockRestore());
  const client = await begin(effect, { fingerprint: () => new Map([["amount", 1]]) });
  const failure = await failureOf(client.create({}, { headers: KEY }));
  expect(failure).toMatchObject({ code: Code.Internal });
  expect(warn).toHaveBeenCalledWith(expect.stringContaining("is a Map"), expect.anything());
  expect(effect).not.toHaveBeenCalled();
});
