import { create, createFileRegistry, type DescService, fromBinary } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus } from "../../server/src/gen/grpc/health/v1/health_pb.ts";
import {
  ServerReflection,
  type ServerReflectionRequest,
} from "../../server/src/gen/grpc/reflection/v1/reflection_pb.ts";
import { errorOf } from "../support/calls/errors.ts";
import { bytes, ORDER } from "../support/calls/verbs.ts";
import { healthClient } from "../support/network/health.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest, useServer } from "../support/servers/use-server.ts";

const SERVICE = "onceward.v1.IdempotencyService";
const { SERVING, NOT_SERVING } = HealthCheckResponse_ServingStatus;

const { database, server } = useServer();

let apiKey: string;
beforeAll(async () => {
  ({ apiKey } = await createTenant(database));
});

test.each(["", SERVICE])("the health of %j is SERVING, without a credential", async (service) => {
  expect(await healthClient(server).check({ service })).toMatchObject({ status: SERVING });
});

test("the health of an unknown service is NOT_FOUND", async () => {
  expect(await errorOf(healthClient(server).check({ service: "onceward.v1.Nothing" }))).toMatchObject({
    code: "NotFound",
  });
});

test("a health watch reports SERVING at once, and NOT_SERVING when the server drains", async () => {
  const own = await startServerOfTest(database.url, {
    ONCEWARD_DRAIN_DELAY: "1s",
    ONCEWARD_DRAIN_TIMEOUT: "100ms",
  });
  const statuses = healthClient(own).watch({ service: SERVICE })[Symbol.asyncIterator]();
  expect(await statuses.next()).toMatchObject({ value: { status: SERVING } });
  const stopped = own.stop();
  expect(await statuses.next()).toMatchObject({ value: { status: NOT_SERVING } });
  await stopped;
});

type Version = "v1" | "v1alpha";
type Question = ServerReflectionRequest["messageRequest"];
const LIST_SERVICES: Question = { case: "listServices", value: "*" };

/** Sends the tenant's key with each call. */
const authorize: Interceptor = (next) => (request) => {
  request.header.set("authorization", `Bearer ${apiKey}`);
  return next(request);
};

/** The messages of v1alpha are those of v1. */
const asksVersion =
  (version: Version): Interceptor =>
  (next) =>
  (request) =>
    next({ ...request, url: request.url.replace(".v1.", `.${version}.`) });

/** Asks reflection one question. */
async function reflect(version: Version, question: Question, interceptors: Interceptor[] = [authorize]) {
  const transport = createGrpcTransport({
    baseUrl: `http://127.0.0.1:${server.grpcPort}`,
    interceptors: [...interceptors, asksVersion(version)],
  });
  const client = createClient(ServerReflection, transport);
  for await (const answer of client.serverReflectionInfo(only({ messageRequest: question })))
    return answer.messageResponse;
  throw new Error("reflection did not answer");
}

async function* only<Value>(value: Value): AsyncIterable<Value> {
  yield value;
}

/** Asks for the file of a service, and for its imports one by one unless they came with it; returns what they describe. */
async function describedService(version: Version, name = SERVICE): Promise<DescService> {
  const files = new Map<string, FileDescriptorProto>();
  let question: Question | undefined = { case: "fileContainingSymbol", value: name };
  while (question !== undefined) {
    const answer = await reflect(version, question);
    if (answer.case !== "fileDescriptorResponse") throw new Error(`reflection answered ${answer.case}`);
    for (const bytes of answer.value.fileDescriptorProto) {
      const file = fromBinary(FileDescriptorProtoSchema, bytes);
      files.set(file.name, file);
    }
    const missing = [...files.values()]
      .flatMap(({ dependency }) => dependency)
      .find((file) => !files.has(file));
    question = missing === undefined ? undefined : { case: "fileByFilename", value: missing };
  }
  const file = importedFirst([...files.values()]);
  const service = createFileRegistry(create(FileDescriptorSetSchema, { file })).getService(name);
  if (service === undefined) throw new Error(`${name} is not described`);
  return service;
}

/** Sorts files so that each follows its imports, as a registry requires. */
function importedFirst(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const sorted = new Set<FileDescriptorProto>();
  const add = (file: FileDescriptorProto) => {
    for (const imported of files) if (file.dependency.includes(imported.name)) add(imported);
    sorted.add(file);
  };
  for (const file of files) add(file);
  return [...sorted];
}

test.each(["v1", "v1alpha"] as const)(
  "a client that knows only reflection %s can claim and complete",
  async (version) => {
    const services = [SERVICE, Health.typeName].map((name) => expect.objectContaining({ name }));
    expect(await reflect(version, LIST_SERVICES)).toMatchObject({
      value: { service: expect.arrayContaining(services) },
    });
    const transport = createGrpcTransport({
      baseUrl: `http://127.0.0.1:${server.grpcPort}`,
      interceptors: [authorize],
    });
    const client = createClient(await describedService(version), transport) as unknown as {
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
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${server.grpcPort}` });
  const client = createClient(await describedService("v1", Health.typeName), transport) as unknown as {
    check(request: unknown): Promise<{ status: number }>;
  };
  expect((await client.check({ service: SERVICE })).status).toBe(1);
});

test.each(["v1", "v1alpha"] as const)("reflection %s is refused without a credential", async (version) => {
  expect(await errorOf(reflect(version, LIST_SERVICES, []))).toMatchObject({
    code: "Unauthenticated",
    reason: "CREDENTIAL_MISSING",
  });
});
