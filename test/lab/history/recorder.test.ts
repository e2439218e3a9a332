import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../../clients/typescript/src/gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "../../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import {
  BatchResponseSchema,
  ClaimResponseSchema,
  IdempotencyService,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { Result_Kind } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { type Journal, openJournal, readJournals } from "./journal.ts";
import { describeError, marked } from "./messages.ts";
import { nowMs } from "./operation.ts";
import { recordCall, recordingInterceptor, recordingTransport } from "./recorder.ts";

const ID = { namespace: "charges", key: "order-1" };
const RECORD = { tenant: "acme", ...ID };

let directory: string;
let path: string;
let journal: Journal;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "onceward-history-"));
  path = join(directory, "client-1.jsonl");
  journal = openJournal(path);
});

afterEach(() => {
  journal.close();
  rmSync(directory, { recursive: true });
});

type Outcome = MessageInitShape<typeof ClaimResponseSchema>["outcome"];

function client(answers: {
  readonly claim?: () => Outcome;
  readonly batch?: () => MessageInitShape<typeof BatchResponseSchema>;
}) {
  const recording = { journal, client: "client-1", replica: "replica-1", tenant: "acme" };
  const transport = createRouterTransport(
    ({ service }) =>
      service(IdempotencyService, {
        claim: () => create(ClaimResponseSchema, { outcome: answers.claim?.() ?? { case: undefined } }),
        batch: () => create(BatchResponseSchema, answers.batch?.() ?? {}),
      }),
    { transport: { interceptors: [recordingInterceptor(recording)] } },
  );
  return { recording, api: createClient(IdempotencyService, transport) };
}

function refusal(code: Code, reason: string): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: "onceward" } };
  return new ConnectError("no", code, undefined, [info]);
}

/** As connect wraps what Node says; most codes of Node's it takes for INTERNAL. */
function brokenBy(code: string, message: string): ConnectError {
  return new ConnectError(
    "no",
    Code.Internal,
    undefined,
    undefined,
    Object.assign(new Error(message), { code }),
  );
}

test("a call is recorded with its interval, its request and its answer", async () => {
  const beforeMs = nowMs();
  const { api } = client({ claim: () => ({ case: "claimed", value: { fencingToken: 1024n, attempt: 1 } }) });
  await api.claim({ ...ID, claimId: "call-1", fingerprint: new Uint8Array(32), lease: { seconds: 2n } });
  const [operation] = readJournals([path]);
  expect(operation).toMatchObject({
    ...RECORD,
    client: "client-1",
    replica: "replica-1",
    request: { kind: "claim", claimId: "call-1", leaseMs: 2000, fingerprint: expect.any(String) },
    answer: { kind: "claimed", token: 1024, attempt: 1 },
  });
  expect(operation?.invokedAtMs).toBeGreaterThanOrEqual(beforeMs);
  expect(operation?.returnedAtMs).toBeGreaterThanOrEqual(operation?.invokedAtMs ?? 0);
  expect(operation?.returnedAtMs).toBeLessThanOrEqual(nowMs());
});

test.each([
  ["a refusal is definite", refusal(Code.FailedPrecondition, "FINGERPRINT_MISMATCH"), "refused"],
  ["UNAVAILABLE is not", refusal(Code.Unavailable, "SHUTTING_DOWN"), "unknown"],
  ["but a tenant that moves is", refusal(Code.Unavailable, "TENANT_MOVING"), "refused"],
  ["DEADLINE_EXCEEDED is not", refusal(Code.DeadlineExceeded, "DEADLINE_EXCEEDED"), "unknown"],
  ["INTERNAL is not", refusal(Code.Internal, "INTERNAL"), "unknown"],
  ["a reply that was too large is not", refusal(Code.ResourceExhausted, "RESPONSE_TOO_LARGE"), "unknown"],
  ["what did not come from the service is not", new ConnectError("reset", Code.Aborted), "unknown"],
])("%s", async (_, error, kind) => {
  const fail = () => {
    throw error;
  };
  await expect(client({ claim: fail }).api.claim(ID)).rejects.toThrow();
  const [operation] = readJournals([path]);
  expect(operation?.answer.kind).toBe(kind);
  expect(operation?.returnedAtMs === Number.POSITIVE_INFINITY).toBe(kind === "unknown");
});

test.each([
  ["an error of the service is its own", refusal(Code.Internal, "INTERNAL"), "service"],
  [
    "and so is one without a reason that came as an answer",
    new ConnectError("no", Code.Unknown, { "grpc-status": "2" }),
    "service",
  ],
  ["a connection that broke has made one", brokenBy("ECONNRESET", "read ECONNRESET"), "connection"],
  ["and so has one that just ended", new ConnectError("stream closed: CANCEL", Code.Canceled), "connection"],
  [
    "but not one that only reset the call",
    brokenBy("ERR_HTTP2_STREAM_ERROR", "NGHTTP2_INTERNAL_ERROR"),
    "caller",
  ],
  ["unless it was to end", brokenBy("ERR_HTTP2_STREAM_ERROR", "NGHTTP2_REFUSED_STREAM"), "connection"],
  ["all others are the caller's", new ConnectError("protocol error", Code.Internal), "caller"],
])("%s", (_, error, by) => {
  expect(describeError(error)).toMatchObject({ kind: "unknown", failure: { by, code: Code[error.code] } });
});

test("a transport without interceptors is recorded as well", async () => {
  const plain = createRouterTransport(({ service }) =>
    service(IdempotencyService, {
      claim: () => create(ClaimResponseSchema, { outcome: { case: "inProgress", value: {} } }),
    }),
  );
  const recording = { journal, client: "client-1", replica: "replica-1", tenant: "acme" };
  await createClient(IdempotencyService, recordingTransport(plain, recording)).claim(ID);
  expect(readJournals([path])).toMatchObject([
    { ...RECORD, request: { kind: "claim" }, answer: { kind: "inProgress" } },
  ]);
});

test("a batch is recorded item by item", async () => {
  const items: MessageInitShape<typeof BatchResponseSchema>["items"] = [
    { response: { case: "claim" as const, value: { outcome: { case: "inProgress" as const, value: {} } } } },
    { response: { case: "release" as const, value: {} } },
    {
      response: {
        case: "error" as const,
        value: { code: Code.Aborted, reason: ErrorReason.CLAIM_SUPERSEDED },
      },
    },
  ];
  const { api } = client({ batch: () => ({ items }) });
  const settling = { ...ID, fencingToken: 7n };
  await api.batch({
    items: [
      { request: { case: "claim", value: ID } },
      { request: { case: "complete", value: { ...settling, result: { kind: Result_Kind.FAILURE } } } },
      { request: { case: "release", value: settling } },
    ],
  });
  const operations = readJournals([path]);
  expect(operations.map(({ answer }) => answer)).toEqual([
    { kind: "inProgress" },
    { kind: "malformed", problem: "a complete is answered as a release" },
    { kind: "refused", reason: "CLAIM_SUPERSEDED" },
  ]);
  expect(operations.map(({ batch }) => batch?.index)).toEqual([0, 1, 2]);
  expect(new Set(operations.map(({ batch }) => batch?.id)).size).toBe(1);
  expect(operations[1]?.request).toMatchObject({ kind: "complete", token: 7, result: { isFailure: true } });
});

test("a batch that is answered with fewer items is malformed", async () => {
  const { api } = client({ batch: () => ({ items: [] }) });
  await api.batch({ items: [{ request: { case: "lookup", value: ID } }] });
  expect(readJournals([path])[0]?.answer.kind).toBe("malformed");
});

test("marks of tenants are read from payloads", async () => {
  const result = { kind: Result_Kind.SUCCESS, payload: Buffer.from(marked("globex", "paid")) };
  await client({ claim: () => ({ case: "completed", value: { result } }) }).api.claim(ID);
  const [operation] = readJournals([path]);
  expect(operation).toMatchObject({ answer: { kind: "completed" }, marks: ["globex"] });
});

test("recordCall records an administrator's change", async () => {
  const { recording } = client({});
  expect(await recordCall(recording, RECORD, { kind: "forget" }, async () => "done")).toBe("done");
  const failing = async () => {
    throw refusal(Code.NotFound, "RECORD_NOT_FOUND");
  };
  await expect(recordCall(recording, RECORD, { kind: "forget" }, failing)).rejects.toThrow();
  expect(readJournals([path]).map(({ answer }) => answer)).toEqual([
    { kind: "ok" },
    { kind: "refused", reason: "RECORD_NOT_FOUND" },
  ]);
});

test("a call of a killed process has an unknown outcome, and its unfinished line is ignored", () => {
  const request = { kind: "lookup" } as const;
  journal.invoked([{ ...RECORD, id: "c-1", client: "c", replica: "r", request, invokedAtMs: 1 }]);
  appendFileSync(path, '{"returned":{"id":"c-1","ans');
  expect(readJournals([path])).toMatchObject([
    { id: "c-1", answer: { kind: "unknown" }, returnedAtMs: Number.POSITIVE_INFINITY },
  ]);
});

test("journals of several processes are merged, and an id that occurs twice is refused", () => {
  const other = join(directory, "client-2.jsonl");
  const second = openJournal(other);
  const operation = {
    ...RECORD,
    client: "c",
    replica: "r",
    request: { kind: "lookup" } as const,
    invokedAtMs: 1,
  };
  journal.invoked([{ ...operation, id: "c-1" }]);
  second.invoked([{ ...operation, id: "c-2" }]);
  second.close();
  expect(readJournals([path, other]).map(({ id }) => id)).toEqual(["c-1", "c-2"]);
  expect(() => readJournals([path, path])).toThrow("c-1");
  expect(() => openJournal(path)).toThrow("EEXIST");
});
