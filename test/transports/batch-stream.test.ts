import http2, { type IncomingHttpHeaders } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import {
  type BatchStreamRequest,
  BatchStreamRequestSchema,
  type BatchStreamResponse,
  BatchStreamResponseSchema,
} from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { startTarget, type Target } from "../support/attacks/hostility.ts";
import { untilStill } from "../support/attacks/until-still.ts";
import { type ItemRequest, runBatch } from "../support/calls/batches.ts";
import { connectClient } from "../support/calls/clients.ts";
import { comparable } from "../support/calls/comparable.ts";
import { complete, ORDER, success } from "../support/calls/verbs.ts";
import { untilBlocked } from "../support/database/connections.ts";
import { type OpenBatchStream, openBatchStream } from "../support/network/open-batch-stream.ts";
import { openSession } from "../support/network/open-session.ts";
import { callRaw, framed, frameOf, grpcHeaders, pathOf } from "../support/network/raw-grpc.ts";
import { createTenant, partsOf } from "../support/servers/tenants.ts";
import { startProcessOfTest } from "../support/servers/use-server.ts";

/** Batches of a stream that the server has in flight before it stops reading. */
const MAX_UNDER_WAY = 16;

let target: Target;

beforeAll(async () => {
  target = await startTarget();
});

afterAll(() => target?.end());

afterEach(() => target.expectUnharmed());

const connect = (port = target.server.grpcPort) => openSession(port);

async function open(apiKey: string): Promise<OpenBatchStream> {
  return openBatchStream(await connect(), apiKey);
}

/** Opens a stream of a new tenant. */
async function ownTenant() {
  const { apiKey } = await createTenant(target.database);
  return { client: connectClient(target.server, apiKey), batches: await open(apiKey) };
}

const lookup = (key = ORDER.key): ItemRequest => ({ case: "lookup", value: { ...ORDER, key } });
const claim = (key = ORDER.key): ItemRequest => ({ case: "claim", value: { ...ORDER, key, claimId: "c" } });
const items = (...requests: ItemRequest[]) => requests.map((request) => ({ request }));

/** Locks the records, so that every statement on them waits until the test releases them. */
async function holdRecords({ database }: Target): Promise<() => Promise<void>> {
  const connection = new pg.Client({ connectionString: database.url });
  await connection.connect();
  await connection.query("begin; lock table records in access exclusive mode");
  const letGo = () => connection.end();
  onTestFinished(letGo);
  return letGo;
}

/** Resolves once the server has read what was sent before: it answers a ping after that. */
async function untilRead({ stream }: OpenBatchStream): Promise<void> {
  await expect.poll(() => stream.writableLength).toBe(0);
  await ping(stream);
}

function ping({ session }: OpenBatchStream["stream"]): Promise<void> {
  return new Promise((resolve, reject) => {
    session?.ping((error) => (error === null ? resolve() : reject(error)));
  });
}

describe("batches on a stream", () => {
  test("get the same answers as from Batch, each under its id", async () => {
    const requests: ItemRequest[] = [
      claim("a"),
      claim("a"),
      { case: "complete", value: { ...ORDER, key: "b", fencingToken: 1n, result: success("x") } },
      lookup("nobody's"),
      claim(""),
      { case: undefined },
    ];
    const [one, other] = [await ownTenant(), await ownTenant()];
    one.batches.send({ id: 7, items: requests.map((request) => ({ request })) });
    const { id, items: answered, error } = await one.batches.answerTo(7);
    expect({ id, error }).toEqual({ id: 7, error: undefined });
    const alone = await runBatch(other.client, requests);
    const keys = requests.map(({ value }) => value?.key ?? "");
    expect(
      comparable(
        answered.map(({ response }) => response),
        keys,
      ),
    ).toEqual(comparable(alone, keys));
    one.batches.stream.end();
    expect(await one.batches.ended).toBe("OK");
  });

  test("work with grpc-js, the usual client of services in Node", async () => {
    const client = new grpc.Client(`127.0.0.1:${target.server.grpcPort}`, grpc.credentials.createInsecure());
    onTestFinished(() => client.close());
    const metadata = new grpc.Metadata();
    metadata.set("authorization", `Bearer ${target.tenant.apiKey}`);
    const stream = client.makeBidiStreamRequest(
      pathOf("BatchStream"),
      (request: BatchStreamRequest) => Buffer.from(toBinary(BatchStreamRequestSchema, request)),
      (bytes) => fromBinary(BatchStreamResponseSchema, bytes),
      metadata,
    );
    const ids = new Set<number>();
    stream.on("data", ({ id, items: answered }: BatchStreamResponse) => {
      if (answered[0]?.response.case === "lookup") ids.add(id);
    });
    const status = new Promise<grpc.StatusObject>((resolve) => stream.on("status", resolve));
    for (const id of [1, 2, 3])
      stream.write(create(BatchStreamRequestSchema, { id, items: items(lookup()) }));
    stream.end();
    expect((await status).code).toBe(grpc.status.OK);
    expect(ids).toEqual(new Set([1, 2, 3]));
  });

  test("may overtake each other", async () => {
    const { client, batches } = await ownTenant();
    await complete(client);
    // The record is in memory: a repeat is answered without the database.
    await client.claim(ORDER);
    const letGo = await holdRecords(target);
    batches.send({ id: 1, items: items(lookup("held up")) });
    batches.send({ id: 2, items: items(claim()) });
    const overtaking = await batches.answerTo(2);
    expect(overtaking.items[0]?.response.case).toBe("claim");
    expect(batches.answers).toHaveLength(1);
    await letGo();
    expect((await batches.answerTo(1)).items).toHaveLength(1);
  });

  test("may arrive in pieces, or several at once", async () => {
    const { batches } = await ownTenant();
    const frames = Buffer.concat(
      [1, 2, 3].map((id) => framed(BatchStreamRequestSchema, { id, items: items(lookup()) })),
    );
    for (const byte of frames.subarray(0, 60)) {
      await new Promise((resolve) => batches.stream.write(Buffer.of(byte), resolve));
    }
    batches.stream.end(frames.subarray(60));
    expect(await batches.ended).toBe("OK");
    expect(batches.answers.map(({ id }) => id).toSorted()).toEqual([1, 2, 3]);
  });

  test("that are in flight when the client ends its side are answered", async () => {
    const { batches } = await ownTenant();
    const letGo = await holdRecords(target);
    batches.send({ id: 1, items: items(lookup()) });
    batches.stream.end();
    await untilRead(batches);
    await untilBlocked(target.database);
    await letGo();
    expect(await batches.ended).toBe("OK");
    expect(batches.answers).toHaveLength(1);
  });

  test("are refused one by one, and the stream continues", async () => {
    const { batches } = await ownTenant();
    batches.send({ id: 1, items: [] });
    // A field of BatchRequest whose length exceeds the message.
    batches.stream.write(frameOf(Buffer.concat([Buffer.of(0x10, 2), Buffer.of(0x0a, 2, 0xff, 0xff)])));
    batches.send({ id: 3, items: items(lookup()), timeout: { seconds: 0n, nanos: 0 } });
    batches.send({ id: 4, items: items(lookup()) });
    const reasons = await Promise.all(
      [1, 2, 3, 4].map(async (id) => (await batches.answerTo(id)).error?.reason),
    );
    expect(reasons).toEqual([
      ErrorReason.INVALID_REQUEST,
      ErrorReason.INVALID_REQUEST,
      ErrorReason.DEADLINE_EXCEEDED,
      undefined,
    ]);
    expect((await batches.answerTo(1)).error?.fieldViolations[0]?.field).toBe("items");
  });

  test("have deadlines of their own", async () => {
    const { batches } = await ownTenant();
    const letGo = await holdRecords(target);
    batches.send({ id: 1, items: items(lookup()), timeout: { seconds: 0n, nanos: 50_000_000 } });
    const { items: answered, error } = await batches.answerTo(1);
    await letGo();
    // The refusal of the batch or of its items: either deadline may pass first.
    expect(error ?? answered[0]?.response.value).toMatchObject({ reason: ErrorReason.DEADLINE_EXCEEDED });
  });

  test("without a credential are not read, and the stream is refused", async () => {
    const session = await connect();
    const batches = openBatchStream(session, undefined);
    batches.stream.write(frameOf(Buffer.concat([Buffer.of(0x10, 1), Buffer.of(0x0a, 2, 0xff, 0xff)])));
    expect(await batches.ended).toBe("Unauthenticated");
    expect(batches.answers).toEqual([]);
    const refused = await callRaw(session, grpcHeaders("BatchStream", undefined), frameOf(Buffer.alloc(0)));
    expect(refused).toMatchObject({ code: "Unauthenticated", reason: "CREDENTIAL_MISSING" });
  });
});

test("a batch is refused after its key was revoked, on a stream that was opened with the key", async () => {
  const { apiKey } = await createTenant(target.database);
  const batches = await open(apiKey);
  batches.send({ id: 1, items: items(lookup()) });
  expect((await batches.answerTo(1)).error).toBeUndefined();
  await target.database.query("update api_keys set revoked_at = now() where id = $1", [partsOf(apiKey).id]);
  let id = 1;
  const reason = async () => {
    id++;
    batches.send({ id, items: items(lookup()) });
    return (await batches.answerTo(id)).error?.reason;
  };
  // The README promises it for every key.
  await expect.poll(reason, { timeout: 10_000, interval: 200 }).toBe(ErrorReason.CREDENTIAL_INVALID);
});

test("a stream announces in its headers that it accepts no compressed messages", async () => {
  const { batches } = await ownTenant();
  const headers = new Promise<IncomingHttpHeaders>((resolve) => batches.stream.once("response", resolve));
  batches.send({ id: 1, items: items(lookup()) });
  expect((await headers)["grpc-accept-encoding"]).toBe("identity");
});

describe("a stream is ended for", () => {
  test.each([
    [
      "a message without an id",
      framed(BatchStreamRequestSchema, { items: items(lookup()) }),
      "InvalidArgument",
    ],
    ["an invalid message", frameOf(Buffer.of(0x0a, 0x7f)), "InvalidArgument"],
    ["a message that is too long", Buffer.of(0, 0x7f, 0, 0, 0), "ResourceExhausted"],
    ["a compressed message", frameOf(Buffer.of(0x10, 1), 1), "Unimplemented"],
  ])("%s, once what came before is answered", async (_name, frame, status) => {
    const { batches } = await ownTenant();
    const letGo = await holdRecords(target);
    batches.send({ id: 1, items: items(lookup()) });
    batches.stream.write(frame);
    await untilRead(batches);
    await untilBlocked(target.database);
    await letGo();
    expect(await batches.ended).toBe(status);
    expect(batches.answers.map(({ id }) => id)).toEqual([1]);
  });

  test("a message that stays incomplete", async () => {
    const { batches } = await ownTenant();
    batches.stream.write(framed(BatchStreamRequestSchema, { id: 1, items: items(lookup()) }).subarray(0, 12));
    expect(await batches.ended).toBe(`RESET ${http2.constants.NGHTTP2_CANCEL}`);
  });
});

describe("a stream limits", () => {
  /** The other tests' target ends a stream that stops for a second. On a busy machine these tests stop longer. */
  let impatient: Target;

  beforeAll(async () => {
    impatient = target;
    target = await startTarget(undefined, { ONCEWARD_REQUEST_TIMEOUT: "60s" });
  });

  afterAll(async () => {
    if (target !== impatient) await target.end();
    target = impatient;
  });

  test("the batches in flight: the sender of more waits for answers", async () => {
    const { batches } = await ownTenant();
    const letGo = await holdRecords(target);
    const large: ItemRequest = {
      case: "complete",
      value: { ...ORDER, fencingToken: 1n, result: success("x".repeat(60_000)) },
    };
    const count = 3 * MAX_UNDER_WAY;
    const ids = Array.from({ length: count }, (_, place) => place + 1);
    for (const id of ids) batches.send({ id, items: items(large) });
    await untilStill(
      () => batches.stream.writableLength,
      () => ping(batches.stream),
    );
    // Unread messages lie in the windows of HTTP/2 and with their sender.
    expect(batches.stream.writableLength).toBeGreaterThan((count - MAX_UNDER_WAY - 2) * 60_000);
    await letGo();
    batches.stream.end();
    expect(await batches.ended).toBe("OK");
    expect(batches.answers).toHaveLength(count);
  });

  test("the answers that are not read: their reader can't send until it reads", async () => {
    const { client, batches } = await ownTenant();
    await complete(client, success("x".repeat(60_000)));
    batches.stream.pause();
    const wide = { ...ORDER, claimId: "c".repeat(128), owner: "o".repeat(128) };
    const replays = Array.from({ length: 10 }, (): ItemRequest => ({ case: "claim", value: wide }));
    // Of 3 KB each, with an answer of 600 KB each.
    const count = 150;
    for (let id = 1; id <= count; id++) batches.send({ id, items: items(...replays) });
    await untilStill(
      () => batches.stream.writableLength,
      () => ping(batches.stream),
    );
    expect(batches.stream.writableLength).toBeGreaterThan(0);
    batches.stream.resume();
    batches.stream.end();
    expect(await batches.ended).toBe("OK");
    expect(batches.answers).toHaveLength(count);
  });

  test("the streams of its connection", async () => {
    const session = await connect();
    const { apiKey } = target.tenant;
    const streams = Array.from({ length: 101 }, () => openBatchStream(session, apiKey));
    expect(await streams.at(-1)?.ended).toBe(`RESET ${http2.constants.NGHTTP2_REFUSED_STREAM}`);
    streams[0]?.stream.end();
    expect(await streams[0]?.ended).toBe("OK");
    const another = openBatchStream(session, apiKey);
    another.send({ id: 1, items: items(lookup()) });
    expect((await another.answerTo(1)).error).toBeUndefined();
  });
});

test("a server that stops ends its streams, and answers the batches that arrived before", async () => {
  const server = await startProcessOfTest(target.database.url);
  const session = await connect(server.grpcPort);
  const [idle, busy] = [
    openBatchStream(session, target.tenant.apiKey),
    openBatchStream(session, target.tenant.apiKey),
  ];
  busy.send({ id: 1, items: items(lookup()) });
  await busy.answerTo(1);
  const left = new Promise((resolve) => session.once("goaway", resolve));
  server.signal("SIGTERM");
  await left;
  // This batch is sent before the client learns of the drain.
  busy.send({ id: 2, items: items(lookup()) });
  await busy.answerTo(2);
  expect(await Promise.all([idle.ended, busy.ended])).toEqual(["OK", "OK"]);
  expect(await server.exited).toBe(0);
});
