import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import {
  BatchRequestSchema,
  IdempotencyService,
} from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import {
  floodGrpcWith,
  floodWith,
  floodWithBegunHeaders,
  headerFlood,
  LONG_REQUEST,
} from "../../../support/attacks/floods.ts";
import type { IdempotencyClient } from "../../../support/calls/clients.ts";
import { seconds, success } from "../../../support/calls/verbs.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
  openHttp2,
  openWindows,
} from "../../../support/network/http2-frames.ts";
import { framed, pathOf } from "../../../support/network/raw-grpc.ts";
import { grpcTransport } from "../grpc-transport.ts";
import { bearing } from "../load/calls.ts";
import { TENANTS } from "../load/spaces.ts";
import { anyReplica, type Fault, last } from "./fault.ts";

const CROWD = 1000;
const [TENANT] = TENANTS;
/** The crowd's own namespace: a history with so many calls on one key could not be judged. */
const NAMESPACE = "crowd";
const TIMEOUT_MS = 10_000;
const LARGE_BYTES = 60_000;
/** Their results together fit into one reply. */
const UNREAD_ITEMS = 60;
const UNREAD_CALLS = 20;
/** As many as leave time for the load on two processors. */
const FLOODING = { begun: 200, grpc: 4, http: 100 };
const FLOOD_STREAMS = 100;
const FLOOD_KILOBYTES = 60;
const FLOOD_REQUESTS = 15;

/** Faults of too many, or badly behaved, callers. */
export const CROWD_FAULTS: readonly Fault[] = [
  {
    name: "crowd-at-one-key",
    target: "client",
    async inject({ rig }) {
      const clients = rig.replicas.map(({ inbound }) =>
        createClient(IdempotencyService, grpcTransport(inbound.port, [bearing(rig.apiKeys[TENANT] ?? "")])),
      );
      const id = { namespace: NAMESPACE, key: randomUUID(), lease: seconds(60) };
      const tokens = new Set<bigint>();
      await Promise.all(
        Array.from({ length: CROWD }, async (_, number) => {
          const claim = { ...id, claimId: `caller-${number}` };
          // A call that another fault loses is not known to be granted.
          const reply = await clients[number % clients.length]
            ?.claim(claim, { timeoutMs: TIMEOUT_MS })
            .catch(() => undefined);
          if (reply?.outcome.case === "claimed") tokens.add(reply.outcome.value.fencingToken);
        }),
      );
      if (tokens.size > 1) throw new Error(`of ${CROWD} claims of one key, ${tokens.size} were granted`);
    },
  },
  {
    // Requests large replies and reads none, so that the buffers of both kernels fill up.
    name: "client-never-reads",
    target: "client",
    async inject(scene) {
      const { inbound, process } = anyReplica(scene);
      const apiKey = scene.rig.apiKeys[TENANT] ?? "";
      const id = { namespace: NAMESPACE, key: randomUUID() };
      const client = createClient(IdempotencyService, grpcTransport(inbound.port, [bearing(apiKey)]));
      // Under another fault nothing may be stored; then the replies are small.
      await storeLarge(client, id).catch(() => {});
      // Without the proxy, which would read the replies.
      const connection = await openHttp2(process.grpcPort).catch(() => undefined);
      // Another fault has ended the process, and then no one answers that could be left unread.
      if (connection === undefined) return;
      const { socket, send } = connection;
      socket.pause();
      void send(unreadCalls(id, apiKey));
      await last(scene, 3000);
      socket.destroy();
      // The load shows whether others are served as before.
      await pause(100);
    },
  },
  {
    // Headers that no one authenticates, whole and begun, whose answers no one reads. The replica may not end, and serves others.
    name: "headers-without-credential",
    target: "replica",
    async inject(scene) {
      // Without the proxy, which would read the replies.
      const { grpcPort, httpPort } = anyReplica(scene).process;
      const opened = await Promise.all([
        floodWithBegunHeaders(grpcPort, FLOODING.begun),
        floodGrpcWith(grpcPort, FLOODING.grpc, headerFlood(FLOOD_KILOBYTES, FLOOD_STREAMS)),
        floodWith(httpPort, FLOODING.http, LONG_REQUEST.repeat(FLOOD_REQUESTS)),
      ]);
      await last(scene, 3000);
      for (const { socket } of opened.flat()) socket.destroy();
    },
  },
];

type RecordId = { readonly namespace: string; readonly key: string };

async function storeLarge(client: IdempotencyClient, id: RecordId): Promise<void> {
  const { outcome } = await client.claim(id, { timeoutMs: TIMEOUT_MS });
  if (outcome.case !== "claimed") return;
  const { fencingToken } = outcome.value;
  const result = success("x".repeat(LARGE_BYTES));
  await client.complete({ ...id, fencingToken, result }, { timeoutMs: TIMEOUT_MS });
}

/**
 * Returns frames that open all windows, and calls whose replies are some 70 MB: more than any buffer on the
 * way holds.
 */
function unreadCalls(id: RecordId, apiKey: string): Buffer {
  const items = Array.from({ length: UNREAD_ITEMS }, () => ({
    request: { case: "lookup" as const, value: id },
  }));
  const body = framed(BatchRequestSchema, { items });
  const headers = {
    ":method": "POST",
    ":scheme": "http",
    ":path": pathOf("Batch"),
    ":authority": "localhost",
    "content-type": "application/grpc",
    te: "trailers",
    authorization: `Bearer ${apiKey}`,
  };
  const calls = Array.from({ length: UNREAD_CALLS }, (_, call) => [
    frame(FRAME.headers, END_HEADERS, 2 * call + 1, headerBlock(headers)),
    frame(FRAME.data, END_STREAM, 2 * call + 1, body),
  ]);
  return Buffer.concat([openWindows(), ...calls.flat()]);
}
