import { randomBytes } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ClaimRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { RequestInfoSchema } from "../../server/src/gen/google/rpc/error_details_pb.ts";
import { connectClient, TRANSPORT_NAMES } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER, success } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
  openHttp2,
} from "../support/network/http2-frames.ts";
import { openBatchStream } from "../support/network/open-batch-stream.ts";
import { openSession } from "../support/network/open-session.ts";
import { connectHttp2, framed, pathOf } from "../support/network/raw-grpc.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startServerProcess } from "../support/servers/server-process.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useStarted } from "../support/use-started.ts";

const database = useDatabase();
const server = useStarted(
  () => startServerProcess(database.url, { ONCEWARD_LOG_LEVEL: "debug", ONCEWARD_SWEEP_INTERVAL: "100ms" }),
  (started) => started.end(),
);
const tenant = useStarted(() => createTenant(database));

/** The documented names: each exists, and changes when its event happens. */
const MOVED_BY_A_CLAIM = [
  'onceward_rpc_duration_seconds_count{service="IdempotencyService",method="Claim",code="OK"}',
  'onceward_store_duration_seconds_count{statement="claim_record"}',
  'onceward_batch_size_count{statement="claim_record"}',
  'onceward_batch_queue_wait_seconds_count{statement="claim_records"}',
  'onceward_operations_total{kind="claim",outcome="claimed"}',
  'onceward_operation_duration_seconds_count{kind="claim"}',
];

test("a claim changes the metrics of the call, its statement, its batch and its outcome", async () => {
  const client = connectClient(server, tenant.apiKey);
  const claims = `onceward_claims_total{tenant="${tenant.name}",outcome="claimed"}`;
  await grant(client, { key: "first" });
  // A replica learns of a new tenant within seconds.
  await expect.poll(async () => (await readMetrics(server)).get(claims), { timeout: 30_000 }).toBe(1);
  const before = await readMetrics(server);
  await grant(client, { key: "second" });
  const after = await readMetrics(server);
  for (const name of [...MOVED_BY_A_CLAIM, claims]) {
    expect([name, (after.get(name) ?? 0) - (before.get(name) ?? 0)]).toEqual([name, 1]);
  }
});

test("a tenant's claim of a key in use is counted under the name that operations have", async () => {
  const client = connectClient(server, tenant.apiKey);
  await grant(client, { key: "in use" });
  await client.claim({ ...ORDER, key: "in use" });
  const count = (name: string) => readMetrics(server).then((metrics) => metrics.get(name));
  expect(await count('onceward_operations_total{kind="claim",outcome="in_progress"}')).toBe(1);
  const ofTenant = `onceward_claims_total{tenant="${tenant.name}",outcome="in_progress"}`;
  await expect.poll(() => count(ofTenant), { timeout: 30_000 }).toBe(1);
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
  "a call over %s logs one line at debug, with its request id, tenant, peer and replica",
  async (transport) => {
    const lines = watchLog();
    const headers = { "x-request-id": "request-of-mine" };
    await connectClient(server, tenant.apiKey, transport).lookup(ORDER, { headers });
    await expect
      .poll(() => lines().filter(({ msg }) => msg === "call"))
      .toEqual([
        expect.objectContaining({
          method: "Lookup",
          code: "OK",
          requestId: "request-of-mine",
          tenant: tenant.name,
          peer: expect.stringMatching(/^(::ffff:)?127\.0\.0\.1$/),
          replica: expect.stringMatching(/^[0-9a-f-]{36}$/),
        }),
      ]);
  },
);

test.each(TRANSPORT_NAMES)(
  "a refusal over %s names the request in a header and a detail",
  async (transport) => {
    const client = connectClient(server, tenant.apiKey, transport);
    const refused = async (headers: Record<string, string>) => {
      const error = ConnectError.from(
        await client
          .release({ ...ORDER, key: "nobody's", fencingToken: 1n }, { headers })
          .catch((thrown) => thrown),
      );
      const [detail] = error.findDetails(RequestInfoSchema);
      expect(detail?.requestId).toBe(error.metadata.get("x-request-id"));
      return detail?.requestId;
    };
    expect(await refused({ "x-request-id": "request-of-mine" })).toBe("request-of-mine");
    const lines = watchLog();
    const made = await refused({});
    // A call is logged after its answer, so the line of the first one may come now.
    await expect
      .poll(() => lines().filter(({ msg, requestId }) => msg === "call" && requestId === made))
      .toEqual([expect.objectContaining({ code: "NOT_FOUND", tenant: tenant.name })]);
  },
);

test("a refused item of a batch, and a refused batch of a stream, name the batch's request", async () => {
  const lines = watchLog();
  const stream = openBatchStream(await openSession(server.grpcPort), tenant.apiKey);
  stream.send({
    id: 1,
    items: [{ request: { case: "release", value: { ...ORDER, key: "none", fencingToken: 1n } } }],
  });
  stream.send({ id: 2, items: [] });
  const [item] = (await stream.answerTo(1)).items;
  const ofItem = item?.response.case === "error" ? item.response.value.requestId : "";
  const ofBatch = (await stream.answerTo(2)).error?.requestId;
  await expect.poll(() => lines().filter(({ msg }) => msg === "call")).toHaveLength(2);
  const logged = lines().filter(({ msg }) => msg === "call");
  expect(logged.find(({ code }) => code === "OK")?.requestId).toBe(ofItem);
  expect(logged.find(({ code }) => code === "INVALID_ARGUMENT")?.requestId).toBe(ofBatch);
});

test("the connections of each port are counted", async () => {
  const grpc = async () => (await readMetrics(server)).get('onceward_connections{port="grpc"}') ?? 0;
  const sessions = await Promise.all(Array.from({ length: 50 }, () => connectHttp2(server.grpcPort)));
  await expect.poll(grpc, { timeout: 30_000 }).toBeGreaterThanOrEqual(50);
  for (const session of sessions) session.destroy();
  await expect.poll(grpc, { timeout: 30_000 }).toBeLessThan(50);
  expect((await readMetrics(server)).get('onceward_connections{port="management"}')).toBeGreaterThan(0);
});

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
