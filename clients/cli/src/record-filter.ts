import { type Timestamp, timestampMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { ListRecordsRequest_Order, Record_State } from "@onceward/client/proto";
import type { Command } from "commander";
import { parseFingerprint, parseId } from "./arguments.ts";
import { choiceOption, choicesOf } from "./choices.ts";
import { parsePast } from "./times.ts";

/** The states that records are listed by: the contract's, and those in progress whose lease has ended. */
const STATES = { ...choicesOf(Record_State), lapsed: "lapsed" } as const;

/** The options that select records. */
export interface RecordFilterOptions {
  readonly namespace?: string;
  readonly state?: Record_State | "lapsed";
  readonly prefix?: string;
  readonly key?: string;
  readonly owner?: string;
  readonly fingerprint?: Uint8Array<ArrayBuffer>;
  readonly claimedAfter?: Timestamp;
  readonly claimedBefore?: Timestamp;
  readonly leaseExpiredBefore?: Timestamp;
  readonly job?: bigint;
  readonly oldestFirst?: true;
}

/** Adds the options that select records and order them. */
export function withRecordFilter(made: Command): Command {
  return made
    .option("-n, --namespace <name>", "only records in this namespace")
    .addOption(
      choiceOption<Record_State | "lapsed">(
        "--state <state>",
        "only records in this state; in_progress also lists those that lapsed: their lease has ended, and the next claim takes them over",
        STATES,
      ),
    )
    .option("--prefix <text>", "only keys with this prefix")
    .option("--key <key>", "only exactly this key, in any namespace; with no other filter but --namespace")
    .option("--owner <text>", "only records whose newest claim has exactly this owner")
    .option(
      "--fingerprint <hex>",
      "only records with this fingerprint, 64 hexadecimal digits",
      parseFingerprint,
    )
    .option("--claimed-after <time>", "only records whose newest claim is after this time", parsePast)
    .option("--claimed-before <time>", "only records whose newest claim is before this time", parsePast)
    .option(
      "--lease-expired-before <time>",
      "only records whose lease ended before this time; with --state ambiguous: ambiguous since then",
      parsePast,
    )
    .option("--job <job>", "only records that this job resolved, and that are still stored", parseId)
    .option(
      "--oldest-first",
      "with --state ambiguous: those that have been ambiguous for the longest time first",
    );
}

/** Returns the filter and the order of a request. */
export function recordFilter(options: RecordFilterOptions) {
  const { namespace = "", prefix = "", key = "", owner = "", state, fingerprint } = options;
  const { claimedAfter, claimedBefore, job, oldestFirst } = options;
  const isLapsed = state === "lapsed";
  const leaseExpiredBefore = isLapsed ? untilNow(options.leaseExpiredBefore) : options.leaseExpiredBefore;
  return {
    namespace,
    keyPrefix: prefix,
    key,
    owner,
    ...(state && { state: isLapsed ? Record_State.IN_PROGRESS : state }),
    ...(fingerprint && { fingerprint }),
    ...(claimedAfter && { claimedAfter }),
    ...(claimedBefore && { claimedBefore }),
    ...(leaseExpiredBefore && { leaseExpiredBefore }),
    ...(job && { recordJob: job }),
    ...(oldestFirst && { order: ListRecordsRequest_Order.LEASE_EXPIRY }),
  };
}

/** Returns a time that is not ahead: the lease of a lapsed record has ended. */
function untilNow(time: Timestamp | undefined): Timestamp {
  const now = timestampNow();
  return time !== undefined && timestampMs(time) < timestampMs(now) ? time : now;
}
