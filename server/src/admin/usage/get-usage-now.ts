import { create } from "@bufbuild/protobuf";
import { Violations } from "../../domain/violations.ts";
import { GetUsageNowResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { administeredPart } from "../own-tenant.ts";
import type { TenantRpc } from "../services.ts";
import { addLastMinutes, callsPerSecond, nowMessage, readLastMinute, UNUSED } from "./last-minute.ts";
import { refusedMessages } from "./refused-now.ts";
import { MINUTES_SHOWN, minuteMessage, readMinutes } from "./used-minutes.ts";

const MAX_NAMESPACES = 100;

/** Returns what a tenant or a namespace used in the last minute, and what was refused. */
export const getUsageNow: TenantRpc<"getUsageNow"> = async ({ namespace }, call, { pool, databaseClock }) => {
  const violations = new Violations();
  const { id } = administeredPart(call, namespace, violations);
  violations.throwIfAny();

  const runner = pool.of(call);
  const latestMs = databaseClock.latestMs();
  const { byNamespace, refused: all } = await readLastMinute(runner, id, latestMs);
  const asked = namespace === "" ? all : all.filter((each) => each.namespace === namespace);
  const refused = await refusedMessages(runner, id, asked);
  if (namespace !== "") {
    const total = nowMessage(namespace, byNamespace.get(namespace) ?? UNUSED);
    return create(GetUsageNowResponseSchema, { total, refused });
  }
  const sorted = [...byNamespace].sort(([, a], [, b]) => callsPerSecond(b) - callsPerSecond(a));
  const minutes = await readMinutes(runner, [id], MINUTES_SHOWN, latestMs);
  return create(GetUsageNowResponseSchema, {
    total: nowMessage("", [...byNamespace.values()].reduce(addLastMinutes, UNUSED)),
    namespaces: sorted.slice(0, MAX_NAMESPACES).map(([name, of]) => nowMessage(name, of)),
    minutes: minutes.map(minuteMessage),
    refused,
  });
};
