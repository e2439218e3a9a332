import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { createWorkplace } from "../support/processes/command.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 30_000;
const SERVICE = "onceward.v1.IdempotencyService";

const hasGrpcurl = await succeeds("grpcurl", ["-version"]);
if (!hasGrpcurl) {
  process.stderr.write(
    "Tests with grpcurl are skipped: go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3\n",
  );
}
const hasPython = await succeeds("python3", ["-c", "import grpc, grpc_health, grpc_reflection"]);
if (!hasPython) {
  process.stderr.write(
    "Tests with grpcio are skipped: pip install grpcio grpcio-health-checking grpcio-reflection\n",
  );
}

const { database, server } = useServer();
let apiKey: string;

beforeAll(async () => {
  ({ apiKey } = await createTenant(database));
});

test.runIf(hasGrpcurl)("grpcurl lists and describes the services, and claims", async () => {
  expect((await grpcurl("list")).trim().split("\n")).toEqual(
    expect.arrayContaining([SERVICE, "grpc.health.v1.Health"]),
  );
  expect(await grpcurl("describe", `${SERVICE}.Claim`)).toContain(
    "rpc Claim ( .onceward.v1.ClaimRequest ) returns ( .onceward.v1.ClaimResponse );",
  );
  const claim = { namespace: "charges", key: "order-from-grpcurl" };
  const reply = await grpcurl("-d", JSON.stringify(claim), `${SERVICE}/Claim`);
  expect(JSON.parse(reply)).toMatchObject({ claimed: { attempt: 1 } });
});

test.runIf(hasGrpcurl)("grpcurl checks the health, and watches it until the server drains", async () => {
  const own = await startDrainingServer();
  const health = (method: string) => [
    ...["-plaintext", "-H", `authorization: Bearer ${apiKey}`],
    ...["-d", JSON.stringify({ service: SERVICE }), addressOf(own), `grpc.health.v1.Health/${method}`],
  ];
  const { stdout } = await run("grpcurl", health("Check"), { timeout: TIMEOUT_MS });
  expect(JSON.parse(stdout)).toEqual({ status: "SERVING" });
  await expectWatch(own, "grpcurl", health("Watch"));
});

test.runIf(hasPython)("grpcio lists the services, claims by reflection and checks the health", async () => {
  const printed = await runPython(PROGRAM, addressOf(server));
  expect(JSON.parse(printed)).toEqual({ services: expect.arrayContaining([SERVICE]), attempt: 1, status: 1 });
});

test.runIf(hasPython)("grpcio watches the health until the server drains", async () => {
  const own = await startDrainingServer();
  await expectWatch(own, "python3", ["-c", WATCH, addressOf(own), SERVICE]);
});

const PROGRAM = `
import json, sys
import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

address, api_key, service = sys.argv[1:]
credential = (("authorization", "Bearer " + api_key),)

class Authorized(grpc.StreamStreamClientInterceptor):
    def intercept_stream_stream(self, proceed, details, requests):
        return proceed(details._replace(metadata=credential), requests)

channel = grpc.insecure_channel(address)
reflected = ProtoReflectionDescriptorDatabase(grpc.intercept_channel(channel, Authorized()))
method = descriptor_pool.DescriptorPool(reflected).FindServiceByName(service).FindMethodByName("Claim")
Request = message_factory.GetMessageClass(method.input_type)
Response = message_factory.GetMessageClass(method.output_type)
claim = channel.unary_unary("/" + service + "/Claim", Request.SerializeToString, Response.FromString)
response = claim(Request(namespace="charges", key="order-from-grpcio"), metadata=credential, timeout=20)
health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service), timeout=20)
print(json.dumps({
    "services": list(reflected.get_services()),
    "attempt": response.claimed.attempt,
    "status": health.status,
}))
`;

const WATCH = `
import sys
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

address, service = sys.argv[1:]
request = health_pb2.HealthCheckRequest(service=service)
for response in health_pb2_grpc.HealthStub(grpc.insecure_channel(address)).Watch(request, timeout=20):
    print(health_pb2.HealthCheckResponse.ServingStatus.Name(response.status), flush=True)
`;

/** Starts a server that reports NOT_SERVING for a second before it ends. */
async function startDrainingServer(): Promise<TestServer> {
  const own = await startTestServer(database.url, {
    ONCEWARD_DRAIN_DELAY: "1s",
    ONCEWARD_DRAIN_TIMEOUT: "100ms",
  });
  onTestFinished(() => own.stop());
  return own;
}

/** Expects that a program prints SERVING at once, and NOT_SERVING when the server drains. */
async function expectWatch(own: TestServer, program: string, args: readonly string[]): Promise<void> {
  const watch = spawn(program, [...args], { stdio: ["ignore", "pipe", "ignore"], timeout: TIMEOUT_MS });
  const closed = once(watch, "close");
  const statuses: string[] = [];
  for await (const line of createInterface(watch.stdout)) {
    const [status] = /\b(?:NOT_)?SERVING\b/.exec(line) ?? [];
    if (status === undefined) continue;
    statuses.push(status);
    if (status === "SERVING") void own.stop();
  }
  await closed;
  expect(statuses).toEqual(["SERVING", "NOT_SERVING"]);
}

async function grpcurl(...args: readonly string[]): Promise<string> {
  const flags = args[0] === "-d" ? args.slice(0, 2) : [];
  const rest = args.slice(flags.length);
  const all = ["-plaintext", "-H", `authorization: Bearer ${apiKey}`, ...flags, addressOf(server), ...rest];
  const { stdout } = await run("grpcurl", all, { timeout: TIMEOUT_MS });
  return stdout;
}

async function runPython(program: string, address: string): Promise<string> {
  const { dir } = await createWorkplace();
  await writeFile(join(dir, "program.py"), program);
  const { stdout } = await run("python3", ["program.py", address, apiKey, SERVICE], {
    cwd: dir,
    timeout: TIMEOUT_MS,
  });
  return stdout;
}

function addressOf({ grpcPort }: TestServer): string {
  return `127.0.0.1:${grpcPort}`;
}

function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  return run(program, [...args], { timeout: TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}
