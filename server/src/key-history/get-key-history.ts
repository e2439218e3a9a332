import { create } from "@bufbuild/protobuf";
import type { TenantRpc } from "../admin/services.ts";
import type { Runner } from "../database/pool.ts";
import { countFields } from "../domain/counts.ts";
import { timestamp } from "../domain/violations.ts";
import {
  DeclinedCall_Outcome,
  DeclinedCallSchema,
  GetKeyHistoryResponseSchema,
} from "../gen/onceward/v1/tenant_admin_pb.ts";
import { parseLookup } from "../records/lookup.ts";
import { DECLINED, type Declined, type DeclinedCall, type DeclinedKey } from "./declined-keys.ts";
import { type CallRow, createKeySlots, type KeySlot } from "./key-histories.ts";

/** Returns what was declined of a key. */
export const getKeyHistory: TenantRpc<"getKeyHistory"> = async (request, call, { pool, pepper }) => {
  const slotOf = createKeySlots(pepper);
  const history = await readKeyHistory(pool.of(call), slotOf(parseLookup(request, call.principal)));
  return history === undefined ? create(GetKeyHistoryResponseSchema) : historyMessage(history);
};

/** Returns the message of what was declined of a key. */
export function historyMessage({ counts, firstAtMs, lastAtMs, calls }: Omit<DeclinedKey, "id">) {
  return create(GetKeyHistoryResponseSchema, {
    ...countFields(counts),
    firstAt: timestamp(firstAtMs),
    lastAt: timestamp(lastAtMs),
    calls: calls.map(callMessage),
  });
}

const readRow = {
  name: "read_key_history",
  text: `
select ${DECLINED.map((name) => `${name}::numeric`).join(", ")}, calls,
       extract(epoch from first_at) * 1000 as "firstAtMs", extract(epoch from last_at) * 1000 as "lastAtMs"
  from key_histories
 where tenant_id = $1::int and slot = $2::int and key_hash = $3::bytea`,
};

type HistoryRow = Readonly<Record<Declined, number>> &
  Pick<DeclinedKey, "firstAtMs" | "lastAtMs"> & { readonly calls: readonly CallRow[] };

/** Returns what was declined of a key by all replicas; undefined: nothing that is kept. */
export async function readKeyHistory(runner: Runner, key: KeySlot) {
  const [row] = await runner.run<HistoryRow>(readRow, [key.tenantId, key.slot, key.hash]);
  if (row === undefined) return undefined;
  const { calls: rows, firstAtMs, lastAtMs, ...counts } = row;
  const calls = rows.map(([atMs, outcome, actor, requestId]) => ({ atMs, outcome, actor, requestId }));
  return { counts, firstAtMs, lastAtMs, calls: calls.sort((a, b) => a.atMs - b.atMs) };
}

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

function callMessage({ atMs, outcome, actor, requestId }: DeclinedCall) {
  return create(DeclinedCallSchema, { at: timestamp(atMs), outcome: OUTCOMES[outcome], actor, requestId });
}
