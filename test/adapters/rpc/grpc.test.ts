import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { AnySchema, anyIs, anyUnpack } from "@bufbuild/protobuf/wkt";
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
import { type Claim, createOnceward } from "@onceward/client";
import { ErrorInfoSchema, RetryInfoSchema } from "@onceward/client/proto";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Status, StatusSchema } from "../../../clients/typescript/src/gen/google/rpc/status_pb.ts";
import {
  formatIdempotencyKey,
  type IdempotentHandler,
  idempotencyKeys,
  idempotentUnary,
  type RpcOptions,
} from "../../../clients/typescript/src/grpc.ts";
import { deriveKey } from "../../../clients/typescript/src/keys/keys.ts";
import { crashAndRepeat, withinOrder } from "../../support/calls/orders.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { type Charge, ChargeSchema } from "./test-service.ts";

const { database, server } = useServer();

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

type Handler = IdempotentHandler<Charge, Charge>;
type Options = Partial<RpcOptions<ServerUnaryCall<Charge, Charge>>>;

/** The reply to a call. */
interface Reply {
  readonly id: string | undefined;
  readonly code: status | undefined;
  readonly details: string | undefined;
  readonly statusDetails: Status | undefined;
  /** Whether headers or trailers mark it as a replay. */
  readonly replayed: boolean;
}

interface TestClient {
  call(
    metadata?: Record<string, string> | Metadata,
    request?: MessageInitShape<typeof ChargeSchema>,
  ): Promise<Reply>;
}

/** A service config with retries, which only the test of the client's retries uses. */
const RETRIES = {
  name: [{ service: "test.v1.Charges" }],
  retryPolicy: {
    maxAttempts: 2,
    initialBackoff: "0.01s",
    maxBackoff: "0.01s",
    backoffMultiplier: 1,
    retryableStatusCodes: ["RESOURCE_EXHAUSTED"],
  },
};

const KEY = { "idempotency-key": '"order-1"' };

/**
 * Starts a grpc-js server whose handler is guarded by a real service, and a client; closes both after the
 * test.
 */
async function begin(
  handler: Handler,
  options: Options = {},
  interceptors: Interceptor[] = [],
): Promise<TestClient> {
  const tenant = await createTenant(database);
  const address = `http://127.0.0.1:${server.grpcPort}`;
  const guarding = createOnceward({ address, apiKey: tenant.apiKey });
  const all = { namespace: "charges", caller: () => "a-1", ...options };
  const guarded = new Server();
  guarded.addService({ create: CREATE }, { create: idempotentUnary(guarding, CREATE, all, handler) });
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
    await guarding.close();
  });
  return { call: (metadata = KEY, request = {}) => callOnce(client, metadata, request) };
}

function callOnce(
  client: Client,
  headers: Record<string, string> | Metadata,
  request: MessageInitShape<typeof ChargeSchema>,
): Promise<Reply> {
  const metadata = headers instanceof Metadata ? headers : Metadata.fromHttp2Headers(headers);
  const says = (received: Metadata | undefined) => received?.get("idempotency-replayed")[0] === "true";
  return new Promise((resolve) => {
    let replayed = false;
    const done = (error: ServiceError | null, charge?: Charge) =>
      resolve({
        id: charge?.id,
        code: error?.code,
        details: error?.details,
        statusDetails: statusOf(error?.metadata),
        replayed: replayed || says(error?.metadata),
      });
    const message = create(ChargeSchema, request);
    const call = client.makeUnaryRequest(CREATE.path, write, read, message, metadata, done);
    call.on("metadata", (received: Metadata) => {
      replayed = says(received);
    });
  });
}

function statusOf(metadata: Metadata | undefined): Status | undefined {
  const [bytes] = metadata?.get("grpc-status-details-bin") ?? [];
  return Buffer.isBuffer(bytes) ? fromBinary(StatusSchema, bytes) : undefined;
}

/** Returns the reason of a refusal, and whether it has a retry delay. */
function reasonOf({ statusDetails }: Reply) {
  const details = statusDetails?.details ?? [];
  const infos = details.map((detail) => anyUnpack(detail, ErrorInfoSchema)?.reason);
  return {
    reasons: infos.filter(Boolean),
    retries: details.some((detail) => anyIs(detail, RetryInfoSchema)),
  };
}

const charged: Handler = (_, callback) =>
  callback(null, create(ChargeSchema, { id: "ch_1", labels: { a: "1" } }));

test("the first call runs, and a repeat gets its message, marked", async () => {
  const handler = vi.fn(charged);
  const client = await begin(handler);
  expect(await client.call()).toMatchObject({ id: "ch_1", replayed: false });
  expect(await client.call()).toMatchObject({ id: "ch_1", replayed: true });
  expect(handler).toHaveBeenCalledOnce();
});

test("a call while the first is in progress is refused, with a retry delay", async () => {
  const finish = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const client = await begin((call, callback, claim) => {
    begun.resolve();
    void finish.promise.then(() => charged(call, callback, claim));
  });
  const first = client.call();
  await begun.promise;
  const refused = await client.call();
  expect(refused).toMatchObject({ code: status.ABORTED });
  expect(reasonOf(refused)).toEqual({ reasons: ["IN_PROGRESS"], retries: true });
  finish.resolve();
  expect(await first).toMatchObject({ id: "ch_1" });
});

test("another request with the same key is refused", async () => {
  const handler = vi.fn(charged);
  const client = await begin(handler);
  await client.call(KEY, { id: "1" });
  expect(await client.call(KEY, { id: "2" })).toMatchObject({ code: status.FAILED_PRECONDITION });
  expect(handler).toHaveBeenCalledOnce();
});

test("a call without a key is refused, unless keys are optional", async () => {
  const claims: (Claim | undefined)[] = [];
  const handler: Handler = (call, callback, claim) => {
    claims.push(claim);
    charged(call, callback, claim);
  };
  const strict = await begin(handler);
  expect(await strict.call({})).toMatchObject({ code: status.INVALID_ARGUMENT });
  const lenient = await begin(handler, { required: false });
  expect(await lenient.call({})).toMatchObject({ id: "ch_1" });
  expect(claims).toEqual([undefined]);
});

test("a key may be a field of the request", async () => {
  const handler = vi.fn(charged);
  const client = await begin(handler, { key: ({ request }) => request.requestId || undefined });
  await client.call({}, { requestId: "8e03978e-40d5-43e8-bc93-6894a57f9324" });
  expect(await client.call({}, { requestId: "8e03978e-40d5-43e8-bc93-6894a57f9324" })).toMatchObject({
    replayed: true,
  });
  expect(await client.call({}, { requestId: "\n" })).toMatchObject({ code: status.INVALID_ARGUMENT });
  expect(handler).toHaveBeenCalledOnce();
});

test("a terminal failure is replayed with its details", async () => {
  const details = [
    create(AnySchema, { typeUrl: "type.googleapis.com/test.v1.Reason", value: Buffer.from("51") }),
  ];
  const declined = create(StatusSchema, { code: 9, message: "card declined", details });
  const handler = vi.fn<Handler>((_, callback) => {
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, declined)));
    callback({ code: status.FAILED_PRECONDITION, details: "card declined", metadata });
  });
  const client = await begin(handler);
  const expected = { code: status.FAILED_PRECONDITION, details: "card declined", statusDetails: declined };
  expect(await client.call()).toMatchObject({ ...expected, replayed: false });
  expect(await client.call()).toMatchObject({ ...expected, replayed: true });
  expect(handler).toHaveBeenCalledOnce();
});

test.each([
  ["a failure worth another attempt", { code: status.INTERNAL, details: "busy" }, status.INTERNAL],
  ["an error without a code", new Error("a bug"), status.UNKNOWN],
])("%s releases the claim", async (_, thrown, code) => {
  const handler = vi.fn<Handler>(charged).mockImplementationOnce((_call, callback) => callback(thrown));
  const client = await begin(handler);
  expect(await client.call()).toMatchObject({ code });
  expect(await client.call()).toMatchObject({ id: "ch_1", replayed: false });
  expect(handler).toHaveBeenCalledTimes(2);
});

test("a handler that throws releases the claim", async () => {
  const handler = vi.fn<Handler>(charged).mockImplementationOnce(() => {
    throw new Error("a bug");
  });
  const client = await begin(handler);
  expect(await client.call()).toMatchObject({ code: status.UNKNOWN });
  expect(await client.call()).toMatchObject({ id: "ch_1" });
});

/** Returns a client of a guarded server with an interceptor, and the keys that it has sent. */
async function beginKeyed(interceptor: Interceptor) {
  const keys: (string | undefined)[] = [];
  const handler = vi.fn<Handler>(charged);
  const note: Interceptor = (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start(metadata, listener, next) {
        keys.push(metadata.get("idempotency-key")[0]?.toString());
        next(metadata, listener);
      },
    });
  return { keys, handler, client: await begin(handler, { required: false }, [interceptor, note]) };
}

test("after a crash of its caller a call has the same key, and one effect", async () => {
  const { keys, handler, client } = await beginKeyed(idempotencyKeys());
  await crashAndRepeat(async () => (await client.call({})).id);
  const key = formatIdempotencyKey(deriveKey("orders", "order-1", CREATE.path));
  expect(keys).toEqual([key, key]);
  expect(handler).toHaveBeenCalledOnce();
});

test("a call has the key of its name, its own, or outside of a claim none", async () => {
  const { keys, client } = await beginKeyed(idempotencyKeys({ name: () => "second" }));
  const shared = new Metadata();
  await client.call(shared);
  await withinOrder(async () => {
    await client.call(shared);
    await client.call(KEY);
  });
  expect(keys).toEqual([
    undefined,
    formatIdempotencyKey(deriveKey("orders", "order-1", "second")),
    '"order-1"',
  ]);
  expect(shared.get("idempotency-key")).toEqual([]);
});

test("a method that a loaded proto file calls idempotent gets no key", () => {
  const started = vi.fn();
  const next = () => ({ start: started }) as unknown as InterceptingCall;
  for (const idempotency_level of ["IDEMPOTENCY_UNKNOWN", "NO_SIDE_EFFECTS"]) {
    const method_definition = { ...CREATE, options: { idempotency_level } };
    idempotencyKeys({ withoutClaim: "new key" })({ method_definition }, next).start(new Metadata());
  }
  const sent = started.mock.calls.map(([metadata]) => metadata.get("idempotency-key").length);
  expect(sent).toEqual([1, 0]);
});

test("a new key of a call without a claim is kept by the retries of its service config", async () => {
  const keys: (string | undefined)[] = [];
  const handler: Handler = (call, callback, claim) => {
    keys.push(call.metadata.get("idempotency-key")[0]?.toString());
    if (keys.length === 1) callback({ code: status.RESOURCE_EXHAUSTED, details: "busy" });
    else charged(call, callback, claim);
  };
  const client = await begin(handler, {}, [idempotencyKeys({ withoutClaim: "new key" })]);
  expect(await client.call({})).toMatchObject({ id: "ch_1" });
  expect(await client.call({})).toMatchObject({ id: "ch_1", replayed: false });
  expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 2]);
});
