import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { readServerFacts, type ServerFacts } from "../../database/replicas.ts";
import { isRefusal } from "../../domain/refusal.ts";
import { GetServerInfoResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { VERSION } from "../../version.ts";
import type { AdministrationParts, OperatorRpc } from "../services.ts";

const UNREACHABLE = "database_unreachable";

/** Returns the state of the replica and its configuration, and the number of replicas. */
export const getServerInfo: OperatorRpc<"getServerInfo"> = async (_request, _call, parts) => {
  const { pool, redactedConfig, replicaState } = parts;
  const { schemaVersion, replicas, isUnreachable } = await findFacts(pool, replicaState);
  const reasons = replicaState.degraded();
  return create(GetServerInfoResponseSchema, {
    version: VERSION,
    schemaVersion,
    config: { ...redactedConfig },
    degraded: isUnreachable && !reasons.includes(UNREACHABLE) ? [UNREACHABLE, ...reasons] : [...reasons],
    replicas,
    replicaId: replicaState.id,
  });
};

/** Reads the facts; without the database, returns those of the last heartbeat. */
async function findFacts(
  pool: Runner,
  replicaState: AdministrationParts["replicaState"],
): Promise<ServerFacts & { readonly isUnreachable: boolean }> {
  const known = replicaState.lastBeaten() ?? { schemaVersion: "", replicas: 0 };
  if (replicaState.degraded().includes(UNREACHABLE)) return { ...known, isUnreachable: true };
  try {
    return { ...(await readServerFacts(pool)), isUnreachable: false };
  } catch (error) {
    if (!isRefusal(error, "DATABASE_UNAVAILABLE")) throw error;
    return { ...known, isUnreachable: true };
  }
}
