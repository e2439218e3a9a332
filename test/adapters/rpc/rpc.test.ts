import { createServer } from "node:http";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  type Interceptor as ConnectInterceptor,
  createClient,
  createRouterTransport,
} from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import {
  Client,
  credentials,
  InterceptingCall,
  type Interceptor,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { type Claim, CompletionError, createOnceward, type Onceward } from "@onceward/client";
import { ErrorInfoSchema, IdempotencyService, RetryInfoSchema } from "@onceward/client/proto";
import { createTestingOnceward } from "@onceward/client/testing";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import * as connect from "../../../clients/typescript/src/connect.ts";
import { StatusSchema } from "../../../clients/typescript/src/gen/google/rpc/status_pb.ts";
import * as grpc from "../../../clients/typescript/src/grpc.ts";
import { formatIdempotencyKey, type RpcOptions } from "../../../clients/typescript/src/grpc.ts";
import { deriveKey } from "../../../clients/typescript/src/keys/keys.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { listen } from "../http/listen.ts";
import { type Charge, ChargeSchema, Charges } from "./test-service.ts";

const { database, server } = useServer();

const ORDER = { namespace: "orders", key: "order-1" };
/** The default lease of a namespace. */
const LEASE_MS = 30_000;

type ChargeInit = MessageInitShape<typeof ChargeSchema>;
/** The implementation of the method, for both libraries. */
type Effect = (request: Charge, claim: Claim | undefined) => ChargeInit | Promise<ChargeInit>;

/** The reply to a call. */
interface Reply {
  readonly charge: Charge | undefined;
  readonly code: number | undefined;
  readonly message: string | undefined;
  /** The reasons of the error's details. */
  readonly reasons: readonly string[];
  /** Whether the error has a retry delay. */
  readonly retries: boolean;
  /** Whether headers or trailers mark it as a replay. */
  readonly replayed: boolean;
}

/** Makes a call, by default with the key `order-1`. */
type Call = (headers?: Readonly<Record<string, string>>, request?: ChargeInit) => Promise<Reply>;

interface Settings {
  /** The guard's client. Default: one of a new tenant. */
  readonly onceward?: Onceward;
  readonly options?: Pick<RpcOptions<unknown>, "required" | "waitMs" | "fingerprint">;
}

const KEY = { "idempotency-key": '"order-1"' };
const DECLINED = { reason: "CARD_DECLINED", domain: "test" };
const charged = async () => ({ id: "ch_1", labels: { a: "1" } });
const CHARGED = create(ChargeSchema, { id: "ch_1", labels: { a: "1" } });
const SUCCESS = { code: undefined, message: undefined, reasons: [], retries: false };

async function newOnceward(): Promise<Onceward> {
  const { apiKey } = await createTenant(database);
  return createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
}

/** Starts a Connect server whose method is guarded by a real service, and a client; closes both after the test. */
async function beginConnect(
  effect: Effect,
  settings: Settings = {},
  interceptors: ConnectInterceptor[] = [],
) {
  const { onceward = await newOnceward(), options } = settings;
  const all: RpcOptions<connect.UnaryCall<typeof ChargeSchema>> = {
    namespace: "charges",
    caller: ({ context }) => context.requestHeader.get("x-account") ?? "a-1",
    ...options,
  };
  const implementation = connect.idempotentUnary(onceward, Charges.method.create, all, (request, _, claim) =>
    effect(request, claim),
  );
  const routes = connectNodeAdapter({
    routes: (router) => void router.service(Charges, { create: implementation }),
  });
  const app = await listen(createServer(routes));
  onTestFinished(async () => {
    await app.close();
    await onceward.close();
  });
  const baseUrl = `http://127.0.0.1:${app.port}`;
  const client = createClient(Charges, createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors }));
  const call: Call = async (headers = KEY, request = {}) => {
    let replayed = false;
    const onHeader = (received: Headers) => {
      replayed = received.get("idempotency-replayed") === "true";
    };
    try {
      const charge = await client.create(request, { headers, onHeader });
      return { ...SUCCESS, charge, replayed };
    } catch (cause) {
      const error = ConnectError.from(cause);
      return {
        charge: undefined,
        code: error.code,
        message: error.rawMessage,
        reasons: error.findDetails(ErrorInfoSchema).map(({ reason }) => reason),
        retries: error.findDetails(RetryInfoSchema).length > 0,
        replayed: error.metadata.get("idempotency-replayed") === "true",
      };
    }
  };
  return { call, client };
}

const write = (message: Charge) => Buffer.from(toBinary(ChargeSchema, message));
const read = (bytes: Buffer) => fromBinary(ChargeSchema, bytes);

const CREATE: MethodDefinition<Charge, Charge> = {
  path: "/test.v1.Charges/Create",
  requestStream: false,
  responseStream: false,
  requestSerialize: write,
  requestDeserialize: read,
  responseSerialize: write,
  responseDeserialize: read,
};

/** A service config with retries, which only the test of the client's retries uses. */
const RETRIES = {
  name: [{ service: "test.v1.Charges" }],
  retryPolicy: {
    maxAttempts: 2,
    initialBackoff: "0.01s",
    maxBackoff: "0.01s",
    backoffMultiplier: 1,
    retryableStatusCodes: ["DATA_LOSS"],
  },
};

type Handler = grpc.IdempotentHandler<Charge, Charge>;

/** Starts a grpc-js server whose handler is guarded by a real service, and a client; closes both after the test. */
async function beginGrpc(
  handler: Handler,
  options: Partial<RpcOptions<ServerUnaryCall<Charge, Charge>>> = {},
  interceptors: Interceptor[] = [],
) {
  const onceward = await newOnceward();
  const all = { namespace: "charges", caller: () => "a-1", ...options };
  const guarded = new Server();
  guarded.addService({ create: CREATE }, { create: grpc.idempotentUnary(onceward, CREATE, all, handler) });
  const port = await new Promise<number>((resolve, reject) => {
    guarded.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    interceptors,
    "grpc.service_config": JSON.stringify({ loadBalancingConfig: [], methodConfig: [RETRIES] }),
  });
  onTestFinished(async () => {
    client.close();
    guarded.forceShutdown();
    await onceward.close();
  });
  return (headers: Readonly<Record<string, string>> | Metadata = KEY, request: ChargeInit = {}) =>
    callOnce(client, headers, request);
}

function callOnce(
  client: Client,
  headers: Readonly<Record<string, string>> | Metadata,
  request: ChargeInit,
): Promise<Reply> {
  const metadata = headers instanceof Metadata ? headers : Metadata.fromHttp2Headers(headers);
  const says = (received: Metadata | undefined) => received?.get("idempotency-replayed")[0] === "true";
  return new Promise((resolve) => {
    let replayed = false;
    const done = (error: ServiceError | null, charge?: Charge) => {
      const [bytes] = error?.metadata.get("grpc-status-details-bin") ?? [];
      const details = Buffer.isBuffer(bytes) ? fromBinary(StatusSchema, bytes).details : [];
      resolve({
        charge,
        code: error?.code,
        message: error?.details,
        reasons: details.flatMap((detail) => anyUnpack(detail, ErrorInfoSchema)?.reason ?? []),
        retries: details.some((detail) => anyUnpack(detail, RetryInfoSchema) !== undefined),
        replayed: replayed || says(error?.metadata),
      });
    };
    const message = create(ChargeSchema, request);
    const call = client.makeUnaryRequest(CREATE.path, write, read, message, metadata, done);
    call.on("metadata", (received: Metadata) => {
      replayed = says(received);
    });
  });
}

/** Returns a handler whose errors reach the callback. */
const handlerOf =
  (effect: Effect): Handler =>
  ({ request }, callback, claim) => {
    const run = async () => create(ChargeSchema, await effect(request, claim));
    run().then((charge) => callback(null, charge), callback);
  };

interface Library {
  begin(effect: Effect, options?: Settings["options"]): Promise<Call>;
  /** Begins with a client that sends derived keys, and notes the keys that it sends. */
  beginKeyed(effect: Effect, name?: () => string): Promise<{ call: Call; keys: unknown[] }>;
  /** Returns an error of the library with this code; with the details DECLINED if it is a refusal. */
  failure(code: number, message: string): Error;
  /** The code of an error that has none. */
  readonly unknownCode: number;
}

const CONNECT: Library = {
  begin: async (effect, options) => (await beginConnect(effect, { ...(options && { options }) })).call,
  async beginKeyed(effect, name) {
    const keys: unknown[] = [];
    const note: ConnectInterceptor = (next) => (request) => {
      keys.push(request.header.get("idempotency-key") ?? undefined);
      return next(request);
    };
    const interceptors = [connect.idempotencyKeys({ ...(name && { name }) }), note];
    return { keys, ...(await beginConnect(effect, { options: { required: false } }, interceptors)) };
  },
  failure: (code, message) =>
    new ConnectError(message, code, undefined, [{ desc: ErrorInfoSchema, value: DECLINED }]),
  unknownCode: Code.Internal,
};

const GRPC: Library = {
  begin: (effect, options) => beginGrpc(handlerOf(effect), options),
  async beginKeyed(effect, name) {
    const keys: unknown[] = [];
    const note: Interceptor = (options, nextCall) =>
      new InterceptingCall(nextCall(options), {
        start(metadata, listener, next) {
          keys.push(metadata.get("idempotency-key")[0]?.toString());
          next(metadata, listener);
        },
      });
    const interceptors = [grpc.idempotencyKeys({ ...(name && { name }) }), note];
    return { keys, call: await beginGrpc(handlerOf(effect), { required: false }, interceptors) };
  },
  failure(code, message) {
    const details = [anyPack(ErrorInfoSchema, create(ErrorInfoSchema, DECLINED))];
    const metadata = new Metadata();
    const bytes = toBinary(StatusSchema, create(StatusSchema, { code, message, details }));
    metadata.set("grpc-status-details-bin", Buffer.from(bytes));
    return Object.assign(new Error(message), { code, details: message, metadata });
  },
  unknownCode: status.UNKNOWN,
};

describe.each([
  ["Connect", CONNECT],
  ["grpc-js", GRPC],
])("%s", (_, { begin, beginKeyed, failure, unknownCode }) => {
  test("the first call runs, and a repeat gets its message, marked", async () => {
    const effect = vi.fn(charged);
    const call = await begin(effect);
    expect(await call()).toEqual({ ...SUCCESS, charge: CHARGED, replayed: false });
    expect(await call()).toEqual({ ...SUCCESS, charge: CHARGED, replayed: true });
    expect(effect).toHaveBeenCalledOnce();
  });

  test("a call while the first is in progress is refused, with a retry delay", async () => {
    const handler = Promise.withResolvers<ChargeInit>();
    const begun = Promise.withResolvers<void>();
    const call = await begin(() => {
      begun.resolve();
      return handler.promise;
    });
    const first = call();
    await begun.promise;
    expect(await call()).toMatchObject({ code: Code.Aborted, reasons: ["IN_PROGRESS"], retries: true });
    handler.resolve({});
    expect(await first).toMatchObject({ code: undefined });
  });

  test("another request with the same key is refused", async () => {
    const effect = vi.fn(charged);
    const call = await begin(effect);
    await call(KEY, { id: "1" });
    const reasons = ["FINGERPRINT_MISMATCH"];
    expect(await call(KEY, { id: "2" })).toMatchObject({ code: Code.FailedPrecondition, reasons });
    expect(effect).toHaveBeenCalledOnce();
  });

  test("a call with a malformed key, or without one, is refused, unless keys are optional", async () => {
    const effect = vi.fn<Effect>(charged);
    const strict = await begin(effect);
    for (const headers of [{}, { "idempotency-key": '"order' }])
      expect(await strict(headers)).toMatchObject({ code: Code.InvalidArgument });
    expect(effect).not.toHaveBeenCalled();
    const lenient = await begin(effect, { required: false });
    for (const headers of [{}, KEY]) expect(await lenient(headers)).toMatchObject({ charge: CHARGED });
    expect(effect.mock.calls.map(([, claim]) => claim?.attempt)).toEqual([undefined, 1]);
  });

  test("a terminal failure is replayed with its details", async () => {
    const effect = vi.fn<Effect>(() => Promise.reject(failure(Code.FailedPrecondition, "card declined")));
    const call = await begin(effect);
    const declined = { code: Code.FailedPrecondition, message: "card declined", reasons: [DECLINED.reason] };
    expect(await call()).toMatchObject({ ...declined, replayed: false });
    expect(await call()).toMatchObject({ ...declined, replayed: true });
    expect(effect).toHaveBeenCalledOnce();
  });

  test.each([
    ["a failure worth another attempt", failure(Code.ResourceExhausted, "busy"), Code.ResourceExhausted],
    ["an error without a code", new Error("a bug"), unknownCode],
  ])("%s releases the claim", async (_, thrown, code) => {
    const effect = vi.fn<Effect>(charged).mockRejectedValueOnce(thrown);
    const call = await begin(effect);
    expect(await call()).toMatchObject({ code });
    expect(await call()).toMatchObject({ charge: CHARGED, replayed: false });
    expect(effect).toHaveBeenCalledTimes(2);
  });

  test("after a crash of its caller a call has the same key, and one effect", async () => {
    const effect = vi.fn(charged);
    const { keys, call } = await beginKeyed(effect);
    await crashAndRepeat(async () => (await call({})).charge?.id);
    const key = formatIdempotencyKey(deriveKey("orders", "order-1", CREATE.path));
    expect(keys).toEqual([key, key]);
    expect(effect).toHaveBeenCalledOnce();
  });

  test("a call has the key of its name, its own, or outside of a claim none", async () => {
    const { keys, call } = await beginKeyed(charged, () => "second");
    await call({});
    await withinOrder(async () => {
      await call({});
      await call(KEY);
    });
    const derived = formatIdempotencyKey(deriveKey("orders", "order-1", "second"));
    expect(keys).toEqual([undefined, derived, '"order-1"']);
  });
});

describe("Connect alone", () => {
  test("AIP-155's request_id is a key, too", async () => {
    const effect = vi.fn(charged);
    const { call } = await beginConnect(effect);
    for (const replayed of [false, true])
      expect(await call({}, { requestId: "8e03978e-40d5-43e8-bc93-6894a57f9324" })).toMatchObject({
        replayed,
      });
    expect(effect).toHaveBeenCalledOnce();
  });

  test("ten concurrent calls that wait have one effect and one answer", async () => {
    const effect = vi.fn(charged);
    const { call } = await beginConnect(effect, { options: { waitMs: 10_000 } });
    const replies = await Promise.all(Array.from({ length: 10 }, () => call()));
    expect(replies).toMatchObject(Array(10).fill({ charge: CHARGED }));
    expect(effect).toHaveBeenCalledOnce();
  });

  test("a map in another order is the same request, and callers with one key don't see each other", async () => {
    const effect = vi.fn(charged);
    const { call } = await beginConnect(effect);
    await call(KEY, { labels: { a: "1", b: "2" } });
    expect(await call(KEY, { labels: { b: "2", a: "1" } })).toMatchObject({ replayed: true });
    expect(await call({ ...KEY, "x-account": "a-2" })).toMatchObject({ replayed: false });
    expect(effect).toHaveBeenCalledTimes(2);
  });

  test("if the service is unreachable, nothing runs", async () => {
    const effect = vi.fn(charged);
    const onceward = createOnceward({ address: "http://127.0.0.1:1", apiKey: "none", timeoutMs: 100 });
    const { call } = await beginConnect(effect, { onceward });
    expect(await call()).toMatchObject({ code: Code.Unavailable, retries: true });
    expect(effect).not.toHaveBeenCalled();
  });

  test("callers don't see errors of the guard itself", async () => {
    const apiKey = `ow_${"0".repeat(16)}_${"0".repeat(43)}`;
    const onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
    const { call } = await beginConnect(charged, { onceward });
    expect(await call()).toMatchObject({ code: Code.Internal, message: "The call could not be guarded." });
  });

  test("a call of a safe method has no key", async () => {
    const note = vi.fn<ConnectInterceptor>((next) => (request) => {
      expect(request.header.has("idempotency-key")).toBe(false);
      return next(request);
    });
    const interceptors = [connect.idempotencyKeys(), note];
    const safe = createRouterTransport(({ service }) => service(IdempotencyService, { lookup: () => ({}) }), {
      transport: { interceptors },
    });
    await withinOrder(() => createClient(IdempotencyService, safe).lookup({}));
    expect(note).toHaveBeenCalled();
  });

  test("a new key of a call without a claim is kept by its retries", async () => {
    const keys: (string | null)[] = [];
    const twice: ConnectInterceptor = (next) => async (request) => {
      await next(request);
      keys.push(request.header.get("idempotency-key"));
      return await next(request);
    };
    const effect = vi.fn(charged);
    const interceptors = [connect.idempotencyKeys({ withoutClaim: "new key" }), twice];
    const { call } = await beginConnect(effect, {}, interceptors);
    for (const _ of [1, 2]) expect(await call({})).toMatchObject({ charge: CHARGED, replayed: true });
    expect(new Set(keys).size).toBe(2);
    expect(effect).toHaveBeenCalledTimes(2);
  });

  test.each([
    ["nothing", undefined],
    ["a lone surrogate", { text: "\ud800" }],
  ])("a call whose fingerprint is of %s is refused, and nothing runs", async (_, value) => {
    const effect = vi.fn(charged);
    const { call } = await beginConnect(effect, { options: { fingerprint: () => value } });
    expect(await call()).toMatchObject({ code: Code.InvalidArgument, reasons: ["INVALID_REQUEST"] });
    expect(effect).not.toHaveBeenCalled();
  });

  test("a call whose fingerprint is of a type without one is the server's error, and nothing runs", async () => {
    const effect = vi.fn(charged);
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
    onTestFinished(() => warn.mockRestore());
    const { call } = await beginConnect(effect, { options: { fingerprint: () => new Map([["amount", 1]]) } });
    expect(await call()).toMatchObject({ code: Code.Internal });
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("is a Map"), expect.anything());
    expect(effect).not.toHaveBeenCalled();
  });
});

describe("grpc-js alone", () => {
  test("a key may be a field of the request", async () => {
    const effect = vi.fn(charged);
    const key = ({ request }: { request: Charge }) => request.requestId || undefined;
    const call = await beginGrpc(handlerOf(effect), { key });
    for (const replayed of [false, true])
      expect(await call({}, { requestId: "8e03978e-40d5-43e8-bc93-6894a57f9324" })).toMatchObject({
        replayed,
      });
    expect(await call({}, { requestId: "\n" })).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(effect).toHaveBeenCalledOnce();
  });

  test("a handler that throws releases the claim", async () => {
    const handler = vi.fn<Handler>(handlerOf(charged)).mockImplementationOnce(() => {
      throw new Error("a bug");
    });
    const call = await beginGrpc(handler);
    expect(await call()).toMatchObject({ code: status.UNKNOWN });
    expect(await call()).toMatchObject({ charge: CHARGED });
  });

  test("a key is not added to the caller's own metadata", async () => {
    const call = await beginGrpc(handlerOf(charged), {}, [grpc.idempotencyKeys()]);
    const shared = new Metadata();
    await withinOrder(async () => {
      expect(await call(shared)).toMatchObject({ charge: CHARGED });
    });
    expect(shared.get("idempotency-key")).toEqual([]);
  });

  test("a method that a loaded proto file calls idempotent gets no key", () => {
    const started = vi.fn();
    const next = () => ({ start: started }) as unknown as InterceptingCall;
    for (const idempotency_level of ["IDEMPOTENCY_UNKNOWN", "NO_SIDE_EFFECTS"]) {
      const method_definition = { ...CREATE, options: { idempotency_level } };
      grpc.idempotencyKeys({ withoutClaim: "new key" })({ method_definition }, next).start(new Metadata());
    }
    const sent = started.mock.calls.map(([metadata]) => metadata.get("idempotency-key").length);
    expect(sent).toEqual([1, 0]);
  });

  test("a new key of a call without a claim is kept by the retries of its service config", async () => {
    const keys: (string | undefined)[] = [];
    const handler: Handler = (call, callback, claim) => {
      keys.push(call.metadata.get("idempotency-key")[0]?.toString());
      if (keys.length === 1) callback({ code: status.DATA_LOSS, details: "busy" });
      else handlerOf(charged)(call, callback, claim);
    };
    const call = await beginGrpc(handler, {}, [grpc.idempotencyKeys({ withoutClaim: "new key" })]);
    for (const _ of [1, 2]) expect(await call({})).toMatchObject({ charge: CHARGED, replayed: false });
    expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 2]);
  });
});

/** Runs an order's function under a claim. */
async function withinOrder(place: () => Promise<unknown>): Promise<void> {
  await using testing = createTestingOnceward();
  await testing.onceward.run(ORDER, place);
}

/** Runs an order's function twice, as if the process died between its effects and the claim's completion. */
async function crashAndRepeat(place: () => Promise<unknown>): Promise<void> {
  await using testing = createTestingOnceward();
  testing.faults.failNext("complete", "INTERNAL");
  await expect(testing.onceward.run(ORDER, place)).rejects.toThrow(CompletionError);
  testing.clock.advance(LEASE_MS);
  await testing.onceward.run(ORDER, place);
}
