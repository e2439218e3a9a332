import type { ClientHttp2Session } from "node:http2";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ClaimRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { connectClient } from "../support/calls/clients.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { lockRows, openConnection } from "../support/database/connections.ts";
import { countRows } from "../support/database/time.ts";
import { callRaw, connectHttp2, framed, grpcHeaders } from "../support/network/raw-grpc.ts";
import { post } from "../support/network/raw-http.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer({ ONCEWARD_DEFAULT_TIMEOUT: "1s" });
let session: ClientHttp2Session;
let tenant: TestTenant;
const warnings: Error[] = [];
const onWarning = (warning: Error) => warnings.push(warning);

beforeAll(async () => {
  process.on("warning", onWarning);
  session = await connectHttp2(server.grpcPort);
});

afterAll(() => {
  process.off("warning", onWarning);
  session?.destroy();
});

beforeEach(async () => {
  tenant = await createTenant(database);
});

/** Claims ORDER with the given timeout header, over either port. */
const CLAIM_WITH_TIMEOUT = {
  "native gRPC": (timeout: string) => {
    const headers = grpcHeaders("Claim", tenant.apiKey, { "grpc-timeout": timeout });
    return callRaw(session, headers, framed(ClaimRequestSchema, ORDER));
  },
  Connect: (timeout: string) => {
    const more = { "connect-timeout-ms": timeout };
    const sending = { contentType: "application/json", apiKey: tenant.apiKey, more };
    return post(server.httpPort, "Claim", sending, Buffer.from(JSON.stringify(ORDER)));
  },
};

type Port = keyof typeof CLAIM_WITH_TIMEOUT;

test.each<[Port, string]>([
  ["native gRPC", "0m"],
  ["native gRPC", "0H"],
  ["native gRPC", "1n"],
  ["Connect", "0"],
])("over %s, a deadline of %s ends before the call has any effect", async (port, timeout) => {
  expect(await CLAIM_WITH_TIMEOUT[port](timeout)).toMatchObject({
    code: "DeadlineExceeded",
    reason: "DEADLINE_EXCEEDED",
  });
  expect(await countRows(database, tenant)).toBe(0);
});

test.each<[Port, string]>([
  ["native gRPC", "99999999H"],
  ["native gRPC", "2147483648m"],
  ["Connect", "9999999999"],
])("over %s, an absurd deadline of %s is clamped and overflows no timer", async (port, timeout) => {
  expect(await CLAIM_WITH_TIMEOUT[port](timeout)).toMatchObject({ code: "OK" });
  expect(warnings.filter(({ name }) => name === "TimeoutOverflowWarning")).toEqual([]);
});

test.each<[Port, string]>([
  ["native gRPC", "soon"],
  ["native gRPC", "-1S"],
  ["native gRPC", "1.5S"],
  ["native gRPC", "1"],
  ["native gRPC", "1000000000000H"],
  ["Connect", "-1"],
  ["Connect", "1S"],
  ["Connect", "1e3"],
  ["Connect", "99999999999"],
])("over %s, the malformed deadline %s is refused", async (port, timeout) => {
  expect(await CLAIM_WITH_TIMEOUT[port](timeout)).toMatchObject({
    code: "InvalidArgument",
    reason: "INVALID_REQUEST",
    fields: ["timeout"],
  });
  expect(await countRows(database, tenant)).toBe(0);
});

describe("while the record is locked", () => {
  test.each<[Port, string]>([
    ["native gRPC", "300m"],
    ["Connect", "300"],
  ])("a call over %s is answered when its deadline passes", async (port, timeout) => {
    await grant(connectClient(server, tenant.apiKey));
    await database.query("update records set state = 3, settled_at = now() where tenant_id = $1", [
      tenant.id,
    ]);
    await lockRows(await openConnection(database), tenant, [ORDER.key]);
    // Later, after the statement's lock time-out, it would be UNAVAILABLE.
    expect(await CLAIM_WITH_TIMEOUT[port](timeout)).toMatchObject({ code: "DeadlineExceeded" });
  });
});

test("a call without a deadline gets the server's default", async () => {
  const client = connectClient(server, tenant.apiKey);
  await grant(client);
  const headers = grpcHeaders("Claim", tenant.apiKey);
  const waiting = framed(ClaimRequestSchema, { ...ORDER, wait: { seconds: 60n } });
  // A wait ends early enough for a response, also with the server's default deadline.
  expect(await callRaw(session, headers, waiting)).toMatchObject({ code: "OK" });
});

test("an expired call does not keep others from the key", async () => {
  await CLAIM_WITH_TIMEOUT["native gRPC"]("0m");
  const { attempt } = await grant(connectClient(server, tenant.apiKey));
  expect(attempt).toBe(1);
});
