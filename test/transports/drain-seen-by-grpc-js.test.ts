import { create, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ClaimRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { pathOf } from "../support/network/raw-grpc.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const CALLERS = 100;
/** Calls of all callers before the drain, and again after it. */
const CALLS = 500;
/** As BatchStreams of a connection are limited, and one more. */
const TOO_MANY_STREAMS = 101;

/** The retry policy of deploy/README.md. */
const RETRY_POLICY = {
  maxAttempts: 5,
  initialBackoff: "0.1s",
  maxBackoff: "2s",
  backoffMultiplier: 2,
  retryableStatusCodes: ["UNAVAILABLE"],
};

const database = useDatabase();
let apiKey: string;

beforeAll(async () => {
  apiKey = (await createTenant(database)).apiKey;
});

const startReplica = (drainTimeout: string) =>
  startServerOfTest(database.url, { ONCEWARD_DRAIN_TIMEOUT: drainTimeout });

interface ClientSettings {
  readonly retries: "none" | "policy";
}

function connect(replicas: readonly TestServer[], { retries }: ClientSettings): grpc.Client {
  const addresses = replicas.map(({ grpcPort }) => `127.0.0.1:${grpcPort}`).join();
  const methodConfig = retries === "policy" ? [{ name: [{}], retryPolicy: RETRY_POLICY }] : [];
  const client = new grpc.Client(`ipv4:${addresses}`, grpc.credentials.createInsecure(), {
    "grpc.enable_retries": retries === "none" ? 0 : 1,
    "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }], methodConfig }),
  });
  onTestFinished(() => client.close());
  return client;
}

function authorization(): grpc.Metadata {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${apiKey}`);
  return metadata;
}

/** Claims a new key; resolves with the status of the call. */
function claim(client: grpc.Client): Promise<grpc.status> {
  const key = crypto.randomUUID();
  const request = create(ClaimRequestSchema, { namespace: "charges", key, claimId: key });
  const message = Buffer.from(toBinary(ClaimRequestSchema, request));
  const same = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    client.makeUnaryRequest(pathOf("Claim"), same, same, message, authorization(), (error) =>
      resolve(error?.code ?? grpc.status.OK),
    );
  });
}

/** Claims on two replicas while one of them drains; returns how often each status was seen, by name. */
async function statusesOfDrain(
  drainTimeout: string,
  settings: ClientSettings,
): Promise<Record<string, number>> {
  const draining = await startReplica(drainTimeout);
  const client = connect([draining, await startReplica("10s")], settings);
  const counts: Record<string, number> = {};
  let calls = 0;
  let last = Number.POSITIVE_INFINITY;
  let drained: Promise<void> | undefined;
  async function callUntilLast(): Promise<void> {
    while (calls < last) {
      calls++;
      const status = grpc.status[await claim(client)];
      counts[status] = (counts[status] ?? 0) + 1;
      if (calls < CALLS) continue;
      drained ??= draining.stop().then(() => {
        last = calls + CALLS;
      });
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, callUntilLast));
  await drained;
  return counts;
}

describe("a client of grpc-js under load, whose replica drains, sees", () => {
  test("no error, with the retry policy", async () => {
    expect(Object.keys(await statusesOfDrain("10s", { retries: "policy" }))).toEqual(["OK"]);
  });

  test("only UNAVAILABLE, without retries", async () => {
    const { OK, UNAVAILABLE, ...others } = await statusesOfDrain("10s", { retries: "none" });
    expect(others).toEqual({});
    expect(OK).toBeGreaterThan(CALLS);
  });

  test("UNAVAILABLE, or INTERNAL for an answer cut before its status, without a drain", async () => {
    const { OK, UNAVAILABLE, INTERNAL, ...others } = await statusesOfDrain("0s", { retries: "none" });
    expect(others).toEqual({});
    expect(OK).toBeGreaterThan(CALLS);
  });
});

test("a client of grpc-js sees UNAVAILABLE for a BatchStream beyond the limit of its connection", async () => {
  const client = connect([await startReplica("0s")], { retries: "none" });
  const same = (bytes: Buffer) => bytes;
  const open = () => client.makeBidiStreamRequest(pathOf("BatchStream"), same, same, authorization());
  const refused = await new Promise<grpc.status>((resolve) => {
    for (let n = 0; n < TOO_MANY_STREAMS; n++) {
      open()
        .on("error", ({ code }: grpc.ServiceError) => resolve(code))
        .resume();
    }
  });
  expect(grpc.status[refused]).toBe("UNAVAILABLE");
});
