import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ClaimRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { connectClient, TRANSPORT_NAMES } from "../helpers/calls/clients.ts";
import { errorOf } from "../helpers/calls/errors.ts";
import { grant, ORDER, success } from "../helpers/calls/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database/database.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
  openHttp2,
} from "../helpers/network/http2-frames.ts";
import { framed, pathOf } from "../helpers/network/raw-grpc.ts";
import { readMetrics } from "../helpers/servers/metrics.ts";
import { type ServerProcess, startServerProcess } from "../helpers/servers/server-process.ts";
import { createTenant, type TestTenant } from "../helpers/servers/tenants.ts";

let database: TestDatabase;
let server: ServerProcess;
let tenant: TestTenant;

beforeAll(async () => {
  database = await createTestDatabase();
  server = await startServerProcess(database.url, {
    ONCEWARD_LOG_LEVEL: "debug",
    ONCEWARD_SWEEP_INTERVAL: "100ms",
  });
  tenant = await createTenant(database);
});

afterAll(async () => {
  await server?.end();
  await database?.drop();
});

/** The documented names: each exists, and changes when its event happens. */
const MOVED_BY_A_CLAIM = [
  'onceward_rpc_duration_seconds_count{service="IdempotencyService",method="Claim",code="OK"}',
  'onceward_store_duration_seconds_count{statement="claim_record"}',
  'onceward_batch_size_count{statement="claim_record"}',
];

test("a claim changes the metrics of the call, its statement, its batch and its outcome", async () => {
  const client = connectClient(server, tenant.apiKey);
  await grant(client, { key: "first" });
  const before = await readMetrics(server);
  await grant(client, { key: "second" });
  const after = await readMetrics(server);
  const claims = `onceward_claims_total{tenant="${tenant.name}",outcome="claimed"}`;
  for (const name of [...MOVED_BY_A_CLAIM, claims]) {
    expect([name, (after.get(name) ?? 0) - (before.get(name) ?? 0)]).toEqual([name, 1]);
  }
});

test("a refused call is counted under its code", async () => {
  await errorOf(connectClient(server, undefined).claim(ORDER));
  const metrics = await readMetrics(server);
  const refused =
    'onceward_rpc_duration_seconds_count{service="IdempotencyService",method="Claim",code="UNAUTHENTICATED"}';
  expect(metrics.get(refused)).toBe(1);
});

test("metrics of events that have not happened are 0, and the version is exported", async () => {
  const names = [...(await readMetrics(server)).keys()];
  expect(names).toEqual(
    expect.arrayContaining([
      "onceward_waiters",
      'onceward_pool_connections{state="busy"}',
      'onceward_pool_connections{state="idle"}',
      'onceward_pool_connections{state="awaited"}',
      "onceward_pool_connections_lost_total",
      "onceward_sweep_errors_total",
      "onceward_sweep_lag_seconds",
      "nodejs_eventloop_lag_seconds",
      "process_resident_memory_bytes",
      expect.stringMatching(/^onceward_build_info\{version="/),
    ]),
  );
});

test("a sweep counts the records that it deletes", async () => {
  const client = connectClient(server, tenant.apiKey);
  await grant(client, { key: "swept" });
  await database.query(
    `update records set expires_at = now() - interval '1 hour', sweep_at = now() - interval '1 hour'
      where tenant_id = $1 and key = 'swept'`,
    [tenant.id],
  );
  const deleted = async () =>
    (await readMetrics(server)).get('onceward_sweep_records_total{action="deleted"}');
  await expect.poll(deleted, { timeout: 30_000 }).toBeGreaterThan(0);
});

/** Returns the log's lines from here on. */
function watchLog(): () => Record<string, unknown>[] {
  const seen = server.output.length;
  return () => server.output.slice(seen).map((line) => JSON.parse(line));
}

test.each(TRANSPORT_NAMES)(
  "a call over %s logs one line at debug, with its request id",
  async (transport) => {
    const lines = watchLog();
    const headers = { "x-request-id": "request-of-mine" };
    await connectClient(server, tenant.apiKey, transport).lookup(ORDER, { headers });
    await expect
      .poll(() => lines().filter(({ msg }) => msg === "call"))
      .toEqual([expect.objectContaining({ method: "Lookup", code: "OK", requestId: "request-of-mine" })]);
  },
);

test("a malformed request id is replaced in the log", async () => {
  const lines = watchLog();
  const headers = { "x-request-id": "{injected: 1}" };
  await connectClient(server, tenant.apiKey).lookup(ORDER, { headers });
  await expect.poll(() => lines().filter(({ msg }) => msg === "call")).toHaveLength(1);
  expect(JSON.stringify(lines())).not.toContain("injected");
});

test("no line of the log contains a key, result, owner, checkpoint or credential", async () => {
  const marker = `planted${randomBytes(8).toString("hex")}`;
  const planted = { namespace: "charges", key: marker };
  const result = { ...success(marker), contentType: marker, metadata: { [marker]: marker } };
  for (const transport of TRANSPORT_NAMES) {
    const client = connectClient(server, tenant.apiKey, transport);
    const id = { ...planted, key: `${marker}-${transport}` };
    const { fencingToken } = await grant(client, { ...id, owner: marker, claimId: marker });
    await client.extendLease({
      ...id,
      fencingToken,
      checkpoint: { name: marker, state: Buffer.from(marker) },
    });
    await errorOf(client.claim({ ...id, key: `${marker}\0`, owner: "o".repeat(1000) }));
    await errorOf(client.release({ ...id, fencingToken: 1n, reason: marker }));
    await client.complete({ ...id, fencingToken, result });
    await errorOf(client.complete({ ...id, fencingToken, result: { ...result, payload: Buffer.alloc(1) } }));
    await client.batch({ items: [{ request: { case: "claim", value: id } }] });
    await errorOf(connectClient(server, `ow_${marker}`, transport).lookup(id));
  }
  const { send, closed, socket } = await openHttp2(server.grpcPort);
  const head = {
    ":method": "POST",
    ":scheme": "http",
    ":path": pathOf("Claim"),
    "content-type": "application/grpc",
    authorization: `Bearer \u00e9${marker}`,
  };
  await send(frame(FRAME.headers, END_HEADERS, 1, headerBlock(head)));
  await send(frame(FRAME.data, END_STREAM, 1, framed(ClaimRequestSchema, planted)));
  socket.end();
  await closed;
  // Shows the planted credential, and output that is not JSON.
  const lines = server.output.join("\n");
  expect(lines).not.toContain(marker);
  expect(lines).not.toContain(tenant.apiKey);
  expect(lines).not.toContain(tenant.apiKey.slice(-20));
});
