import { create } from "@bufbuild/protobuf";
import type { TenantRpc } from "../admin/services.ts";
import { countFields } from "../domain/counts.ts";
import { timestamp } from "../domain/violations.ts";
import {
  DeclinedCall_Outcome,
  DeclinedCallSchema,
  GetKeyHistoryResponseSchema,
} from "../gen/onceward/v1/tenant_admin_pb.ts";
import { parseLookup } from "../records/lookup.ts";
import type { Declined, DeclinedCall } from "./declined-keys.ts";
import { createKeySlots, readKeyHistory } from "./store.ts";

const OUTCOMES: Readonly<Record<Declined, DeclinedCall_Outcome>> = {
  replayed: DeclinedCall_Outcome.REPLAYED,
  in_progress: DeclinedCall_Outcome.IN_PROGRESS,
  ambiguous: DeclinedCall_Outcome.AMBIGUOUS,
  mismatched: DeclinedCall_Outcome.MISMATCHED,
  too_old: DeclinedCall_Outcome.TOO_OLD,
  over_quota: DeclinedCall_Outcome.OVER_QUOTA,
  superseded: DeclinedCall_Outcome.SUPERSEDED,
  unreadable: DeclinedCall_Outcome.UNREADABLE,
};

/** Returns what was declined of a key. */
export const getKeyHistory: TenantRpc<"getKeyHistory"> = async (request, call, { pool, pepper }) => {
  const slotOf = createKeySlots(pepper);
  const history = await readKeyHistory(pool.of(call), slotOf(parseLookup(request, call.principal)));
  if (history === undefined) return create(GetKeyHistoryResponseSchema);
  const { counts, firstAtMs, lastAtMs, calls } = history;
  return create(GetKeyHistoryResponseSchema, {
    ...countFields(counts),
    firstAt: timestamp(firstAtMs),
    lastAt: timestamp(lastAtMs),
    calls: calls.map(callMessage),
  });
};

function callMessage({ atMs, outcome, actor, requestId }: DeclinedCall) {
  return create(DeclinedCallSchema, { at: timestamp(atMs), outcome: OUTCOMES[outcome], actor, requestId });
}
