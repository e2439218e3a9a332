import { create } from "@bufbuild/protobuf";
import {
  BEFORE_ALL_REPLICAS,
  findReplicas,
  readServerFacts,
  type ServerFacts,
} from "../database/replicas.ts";
import { isRefusal } from "../domain/refusal.ts";
import type { LiveReplica } from "../domain/replica.ts";
import { signedDuration, timestamp } from "../domain/violations.ts";
import {
  GetServerInfoResponseSchema,
  ListReplicasResponseSchema,
  ReplicaSchema,
} from "../gen/onceward/v1/operator_pb.ts";
import { VERSION } from "../version.ts";
import { listPage } from "./pages.ts";
import type { AdministrationParts, OperatorRpcs } from "./services.ts";

const UNREACHABLE = "database_unreachable";

/** Returns the RPCs for the state of the replicas. */
export function createServerInfoHandlers({
  pool,
  pageTokens,
  redactedConfig,
  replicaState,
}: AdministrationParts): OperatorRpcs<"getServerInfo" | "listReplicas"> {
  /** Reads the facts; without the database, returns those of the last heartbeat. */
  async function findFacts(): Promise<ServerFacts & { readonly isUnreachable: boolean }> {
    const known = replicaState.lastBeaten() ?? { schemaVersion: "", replicas: 0 };
    if (replicaState.degraded().includes(UNREACHABLE)) return { ...known, isUnreachable: true };
    try {
      return { ...(await readServerFacts(pool)), isUnreachable: false };
    } catch (error) {
      if (!isRefusal(error, "DATABASE_UNAVAILABLE")) throw error;
      return { ...known, isUnreachable: true };
    }
  }

  return {
    async getServerInfo() {
      const { schemaVersion, replicas, isUnreachable } = await findFacts();
      const reasons = replicaState.degraded();
      return create(GetServerInfoResponseSchema, {
        version: VERSION,
        schemaVersion,
        config: { ...redactedConfig },
        degraded: isUnreachable && !reasons.includes(UNREACHABLE) ? [UNREACHABLE, ...reasons] : [...reasons],
        replicas,
        replicaId: replicaState.id,
      });
    },

    async listReplicas(request) {
      const { messages, nextPageToken } = await listPage(request, {
        pageTokens,
        scope: ["ListReplicas"],
        schema: ReplicaSchema,
        find: ([afterId = BEFORE_ALL_REPLICAS], limit) => findReplicas(pool, afterId, limit),
        messageOf: replicaMessage,
        cursorOf: ({ id }) => [id],
      });
      return create(ListReplicasResponseSchema, { replicas: messages, nextPageToken });
    },
  };
}

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
