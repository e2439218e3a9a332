import { create } from "@bufbuild/protobuf";
import { BEFORE_ALL_REPLICAS, findReplicas } from "../../database/replicas.ts";
import type { LiveReplica } from "../../domain/replica.ts";
import { signedDuration, timestamp } from "../../domain/violations.ts";
import { ListReplicasResponseSchema, ReplicaSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { listPage } from "../pages.ts";
import type { OperatorRpc } from "../services.ts";

/** Returns a page of the live replicas. */
export const listReplicas: OperatorRpc<"listReplicas"> = async (request, _call, { pool, pageTokens }) => {
  const { messages, nextPageToken } = await listPage(request, {
    pageTokens,
    scope: ["ListReplicas"],
    schema: ReplicaSchema,
    find: ([afterId = BEFORE_ALL_REPLICAS], limit) => findReplicas(pool, afterId, limit),
    messageOf: replicaMessage,
    cursorOf: ({ id }) => [id],
  });
  return create(ListReplicasResponseSchema, { replicas: messages, nextPageToken });
};

function replicaMessage({
  startedAtMs,
  seenAtMs,
  degraded,
  host = "",
  clockAheadMs,
  ...replica
}: LiveReplica) {
  return create(ReplicaSchema, {
    ...replica,
    host,
    startedAt: timestamp(startedAtMs),
    seenAt: timestamp(seenAtMs),
    degraded: [...degraded],
    clockOffset: clockAheadMs === undefined ? undefined : signedDuration(clockAheadMs),
  });
}
