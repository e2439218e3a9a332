import type { ItemRequest } from "../../../helpers/calls/batches.ts";
import type { Rig } from "../rig.ts";
import { connectTo } from "./callers.ts";
import type { Acknowledgement } from "./losses.ts";

const BATCH = 500;
const TIMEOUT_MS = 20_000;

/**
 * Claims the keys of lost claims again, and counts the tokens that are not above the lost ones. The newest
 * come first, because they were lost last.
 */
export async function claimAgain(rig: Rig, lostInOrder: readonly Acknowledgement[]): Promise<number> {
  const lost = lostInOrder.toReversed();
  const client = connectTo(rig, 0);
  let again = 0;
  for (let start = 0; start < lost.length; start += BATCH) {
    const own = lost.slice(start, start + BATCH);
    const items = own.map(({ record: { namespace, key } }) => ({
      request: { case: "claim", value: { namespace, key } } satisfies ItemRequest,
    }));
    const reply = await client.batch({ items }, { timeoutMs: TIMEOUT_MS });
    reply.items.forEach(({ response }, index) => {
      if (response.case !== "claim" || response.value.outcome.case !== "claimed") return;
      const { fencingToken } = response.value.outcome.value;
      if (Number(fencingToken) <= (own[index]?.token ?? 0)) again++;
    });
  }
  return again;
}
