import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Record, Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";

/** The newest claim of a record: held under a lease, lapsed (the next claim takes it over), ambiguous, or settled. */
export type Lease = "held" | "lapsed" | "ambiguous" | "settled";

/** Returns what became of a record's newest lease. The server says IN_PROGRESS also after it under RECLAIM. */
export function leaseOf({ state, leaseExpiresAt }: Record, now: Date): Lease {
  switch (state) {
    case Record_State.IN_PROGRESS:
      return leaseExpiresAt !== undefined && timestampDate(leaseExpiresAt) <= now ? "lapsed" : "held";
    case Record_State.AMBIGUOUS:
      return "ambiguous";
    default:
      return "settled";
  }
}
