import { create } from "@bufbuild/protobuf";
import { isRefusal } from "../../../core/domain/refusal.ts";
import type { LiveReplica } from "../../../core/domain/replica.ts";
import { signedDuration, timestamp, Violations } from "../../../core/messages/violations.ts";
import { BEFORE_ALL_REPLICAS, findReplicas } from "../../../core/store/replicas.ts";
import { readServerFacts, type ServerFacts } from "../../../core/store/server-facts.ts";
import {
  GetServerInfoResponseSchema,
  ListReplicasResponseSchema,
  OperatorServiceListAuditEventsResponseSchema,
  type Replica,
  ReplicaSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import { VERSION } from "../../../version.ts";
import { listAuditEvents } from "../audit-lists.ts";
import { pageSize, replyPage } from "../pages.ts";
import type { OperatorOptions, OperatorRpcs } from "../services.ts";
import { checkName } from "./tenant-requests.ts";

const UNREACHABLE = "database_away";

/** Returns the RPCs for the state of the replicas and for audit events. */
export function createServerInfoHandlers({
  pool,
  pageTokens,
  redactedConfig,
  replicaState,
}: OperatorOptions): OperatorRpcs<"listAuditEvents" | "getServerInfo" | "listReplicas"> {
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
    async listAuditEvents(request) {
      const violations = new Violations();
      if (request.tenant !== "") checkName("tenant", request.tenant, violations);
      const tenant = request.tenant || undefined;
      const page = await listAuditEvents({ runner: pool, pageTokens }, tenant, request, violations);
      return create(OperatorServiceListAuditEventsResponseSchema, page);
    },

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
      const violations = new Violations();
      const scope = ["ListReplicas"];
      const size = pageSize(request.pageSize, violations);
      const [afterId = BEFORE_ALL_REPLICAS] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const found = await findReplicas(pool, afterId, size + 1);
      const { messages, last } = replyPage(found, size, ReplicaSchema, replicaMessage);
      return create(ListReplicasResponseSchema, {
        replicas: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, [last.id]) }),
      });
    },
  };
}

function replicaMessage(replica: LiveReplica): Replica {
  const { id, version, startedAtMs, seenAtMs, degraded, load, host, clockAheadMs } = replica;
  return create(ReplicaSchema, {
    id,
    version,
    startedAt: timestamp(startedAtMs),
    seenAt: timestamp(seenAtMs),
    degraded: [...degraded],
    ...(load && { load }),
    ...(host !== undefined && { host }),
    ...(clockAheadMs !== undefined && { clockOffset: signedDuration(clockAheadMs) }),
  });
}
