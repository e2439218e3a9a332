import { randomUUID } from "node:crypto";
import type { BatchResponseItem } from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { ItemRequest } from "../../../helpers/calls/batches.ts";
import { fingerprintOf } from "../../../helpers/calls/verbs.ts";
import type { Random } from "../../../helpers/random.ts";
import type { Calls } from "./calls.ts";
import type { Sessions } from "./sessions.ts";
import type { Target } from "./spaces.ts";

const MAX_KEYS = 5;

/**
 * Claims several keys of one tenant in a batch, some of them twice or between lookups, and then settles the
 * granted claims.
 */
export async function runBatch(
  calls: Calls,
  sessions: Sessions,
  random: Random,
  pick: () => Target,
): Promise<void> {
  const first = pick();
  const targets = [first];
  for (let more = 1 + random.below(MAX_KEYS); more > 0; more--) {
    const other = pick();
    if (other.tenant === first.tenant && !calls.isWornOut(other)) targets.push(other);
  }
  const entries = targets.flatMap((target) => itemsOf(target, random));
  const reply = await calls.tell(
    entries.map(({ target }) => target),
    (api, options) => api.batch({ items: entries.map(({ request }) => ({ request })) }, options),
  );
  if (reply === undefined) return;
  await Promise.all(
    reply.items.map(async (item, index) => {
      const target = entries[index]?.target;
      const token = grantedToken(item);
      if (target !== undefined && token !== undefined) await sessions.settle(target, token);
    }),
  );
}

interface Entry {
  readonly target: Target;
  readonly request: ItemRequest;
}

function itemsOf(target: Target, random: Random): Entry[] {
  const { namespace, key } = target;
  const claim = (): Entry => ({
    target,
    request: {
      case: "claim",
      value: { namespace, key, claimId: randomUUID(), fingerprint: fingerprintOf(key) },
    },
  });
  const lookup: Entry = { target, request: { case: "lookup", value: { namespace, key } } };
  const draw = random.next();
  if (draw < 0.25) return [claim(), claim()];
  if (draw < 0.5) return [lookup, claim(), lookup];
  return [claim()];
}

function grantedToken({ response }: BatchResponseItem): bigint | undefined {
  if (response.case !== "claim" || response.value.outcome.case !== "claimed") return undefined;
  return response.value.outcome.value.fencingToken;
}
