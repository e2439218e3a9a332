import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { errorOf } from "../helpers/calls/errors.ts";
import { bytes, ORDER } from "../helpers/calls/verbs.ts";
import { healthClient, NOT_SERVING, SERVING } from "../helpers/network/health.ts";
import { describedService, reflectionService } from "../helpers/network/standard-services.ts";
import { startTestServer } from "../helpers/servers/server.ts";
import { createTenant } from "../helpers/servers/tenants.ts";
import { useServer } from "../helpers/servers/use-server.ts";

const SERVICE = "onceward.v1.IdempotencyService";

const { database, server } = useServer();

let apiKey: string;
beforeAll(async () => {
  ({ apiKey } = await createTenant(database));
});

test.each(["", SERVICE])("the health of %j is SERVING, without a credential", async (service) => {
  expect(await healthClient(server).check(service)).toBe(SERVING);
});

test("the health of an unknown service is NOT_FOUND", async () => {
  expect(await errorOf(healthClient(server).check("onceward.v1.Nothing"))).toMatchObject({
    code: "NotFound",
  });
});

test("a health watch reports SERVING at once, and NOT_SERVING when the server drains", async () => {
  const own = await startTestServer(database.url, {
    ONCEWARD_DRAIN_DELAY: "1s",
    ONCEWARD_DRAIN_TIMEOUT: "100ms",
  });
  onTestFinished(() => own.stop());
  const statuses = healthClient(own).watch(SERVICE);
  expect(await statuses.next()).toMatchObject({ value: SERVING });
  const stopped = own.stop();
  expect(await statuses.next()).toMatchObject({ value: NOT_SERVING });
  await stopped;
});

interface ReflectionAnswer {
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Uint8Array[] };
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
}

type Question = Readonly<Partial<Record<"fileByFilename" | "fileContainingSymbol" | "listServices", string>>>;

/** Sends the tenant's key with each call. */
const authorize: Interceptor = (next) => (request) => {
  request.header.set("authorization", `Bearer ${apiKey}`);
  return next(request);
};

async function reflect(
  version: "v1" | "v1alpha",
  question: Question,
  interceptors: Interceptor[] = [authorize],
): Promise<ReflectionAnswer> {
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${server.grpcPort}`, interceptors });
  // The service is described at run time, so its method has no type.
  const client = createClient(reflectionService(version), transport) as unknown as {
    serverReflectionInfo(questions: AsyncIterable<Question>): AsyncIterable<ReflectionAnswer>;
  };
  for await (const answer of client.serverReflectionInfo(only(question))) return answer;
  throw new Error("reflection did not answer");
}

async function* only<Value>(value: Value): AsyncIterable<Value> {
  yield value;
}

/** Asks for the file of a service, and for its imports one by one unless they came with it. */
async function describingFiles(version: "v1" | "v1alpha", service = SERVICE): Promise<FileDescriptorProto[]> {
  const files = new Map<string, FileDescriptorProto>();
  let question: Question | undefined = { fileContainingSymbol: service };
  while (question !== undefined) {
    const { fileDescriptorResponse } = await reflect(version, question);
    for (const bytes of fileDescriptorResponse?.fileDescriptorProto ?? []) {
      const file = fromBinary(FileDescriptorProtoSchema, bytes);
      files.set(file.name, file);
    }
    const imported = [...files.values()].flatMap(({ dependency }) => dependency);
    const missing = imported.find((name) => !files.has(name));
    question = missing === undefined ? undefined : { fileByFilename: missing };
  }
  return [...files.values()];
}

test.each(["v1", "v1alpha"] as const)(
  "a client that knows only reflection %s can claim and complete",
  async (version) => {
    const { listServicesResponse } = await reflect(version, { listServices: "*" });
    const names = listServicesResponse?.service.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([SERVICE, "grpc.health.v1.Health"]));
    const files = await describingFiles(version);

    const transport = createGrpcTransport({
      baseUrl: `http://127.0.0.1:${server.grpcPort}`,
      interceptors: [authorize],
    });
    const client = createClient(describedService(files, SERVICE), transport) as unknown as {
      claim(request: unknown): Promise<{ outcome: { case: string; value: { fencingToken: bigint } } }>;
      complete(request: unknown): Promise<unknown>;
    };
    const order = { ...ORDER, key: `order-${version}` };
    const { outcome } = await client.claim(order);
    await client.complete({
      ...order,
      fencingToken: outcome.value.fencingToken,
      result: { kind: 1, payload: bytes("done") },
    });
    expect((await client.claim(order)).outcome.case).toBe("completed");
  },
);

test("a client that knows only reflection can ask for the health", async () => {
  const name = "grpc.health.v1.Health";
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${server.grpcPort}` });
  const described = describedService(await describingFiles("v1", name), name);
  const client = createClient(described, transport) as unknown as {
    check(request: unknown): Promise<{ status: number }>;
  };
  expect((await client.check({ service: SERVICE })).status).toBe(1);
});

test.each(["v1", "v1alpha"] as const)("reflection %s is refused without a credential", async (version) => {
  expect(await errorOf(reflect(version, { listServices: "*" }, []))).toMatchObject({
    code: "Unauthenticated",
    reason: "CREDENTIAL_MISSING",
  });
});
