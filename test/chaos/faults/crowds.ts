import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import {
  BatchRequestSchema,
  IdempotencyService,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { connectHttp2, framed, grpcHeaders } from "../../helpers/raw-grpc.ts";
import { seconds } from "../../helpers/verbs.ts";
import { bearing } from "../load/calls.ts";
import { TENANTS } from "../load/spaces.ts";
import { anyReplica, type Fault, last } from "./fault.ts";

const CROWD = 1000;
const [TENANT] = TENANTS;
/** Of the crowd's own: more calls on one key than a history can be judged with. */
const NAMESPACE = "crowd";
const TIMEOUT_MS = 10_000;
const UNREAD_CALLS = 50;
const UNREAD_ITEMS = 200;

/** Callers that are too many, or behave badly. */
export const CROWD_FAULTS: readonly Fault[] = [
  {
    name: "crowd-at-one-key",
    target: "client",
    async inject({ rig }) {
      const clients = rig.replicas.map(({ inbound }) =>
        createClient(
          IdempotencyService,
          createGrpcTransport({
            baseUrl: `http://127.0.0.1:${inbound.port}`,
            interceptors: [bearing(rig.apiKeys[TENANT] ?? "")],
          }),
        ),
      );
      const id = { namespace: NAMESPACE, key: randomUUID(), lease: seconds(60) };
      const tokens = new Set<bigint>();
      await Promise.all(
        Array.from({ length: CROWD }, async (_, number) => {
          const claim = { ...id, claimId: `caller-${number}` };
          // What is lost in another fault is no grant that anybody knows of.
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
    // Asks for much, and lets it lie.
    name: "client-never-reads",
    target: "client",
    async inject(scene) {
      const { rig } = scene;
      const session = await connectHttp2(anyReplica(scene).inbound.port);
      const value = { namespace: NAMESPACE, key: "unread" };
      const items = Array.from({ length: UNREAD_ITEMS }, () => ({
        request: { case: "lookup" as const, value },
      }));
      const body = framed(BatchRequestSchema, { items });
      const headers = grpcHeaders("Batch", rig.apiKeys[TENANT]);
      for (let call = 0; call < UNREAD_CALLS; call++) {
        if (session.destroyed) break;
        session
          .request(headers)
          .on("error", () => {})
          .end(body);
      }
      await last(scene, 3000);
      session.destroy();
      // Others are served as before; nothing but the load tells.
      await pause(100);
    },
  },
];
