import { LATEST_AHEAD_MS } from "../../domain/database-clock.ts";
import { MAX_ATTEMPTS_SHOWN, MAX_REASON_CHARACTERS } from "../attempt.ts";
import {
  FENCING_MARGIN_MS,
  HOLDS,
  IS_PENDING,
  MAX_INLINE_RESULT_BYTES,
  RESULT_KIND,
  STATE,
} from "./record-row.ts";

/*
 * Parts of statements on records. `r` is a row of records, and `i` a row of the statement's input.
 */

/** FENCING_MARGIN_MS as an interval. */
export const FENCING_MARGIN = `interval '${FENCING_MARGIN_MS} milliseconds'`;

/**
 * Returns the condition that two rows have the same primary key. Its last two lines hold for every row: README.md has the reason.
 *
 * @param column the last one of the key.
 */
export function equalKeys(row: string, input: string, column = "key"): string {
  return `${row}.tenant_id = ${input}.tenant_id
     and ${row}.namespace = ${input}.namespace
     and ${row}.${column} = ${input}.${column}
     and ${row}.${column} >= ${input}.${column}
     and (${input}.tenant_id % 1, ${input}.tenant_id % -1) = (0, 0)`;
}

/**
 * Returns the condition that an expired lease of `r` is held: under HOLD, or because the record's first claim is older than its
 * `reclaim_within`. A clock that is set back does not make the claim younger, see LATEST_AHEAD_MS.
 *
 * @param now an expression for now. @param latest a parameter, as of `nowBy`.
 */
export function isHeld(now: string, latest: string): string {
  const course = `to_timestamp(${latest}::float8 / 1000 - ${LATEST_AHEAD_MS / 1000})`;
  return `(${HOLDS}
     and (r.reclaim_within_s is null
          or extract(epoch from greatest(${now}, ${course}) - r.first_claimed_at) >= r.reclaim_within_s))`;
}

/** From when an expired lease of `r` that is held at some time is held: not earlier than its end. */
export const HELD_FROM =
  "greatest(r.lease_expires_at, r.first_claimed_at + r.reclaim_within_s * interval '1 second')";

/** The order in which a statement locks rows. */
export const IN_KEY_ORDER = 'order by i.tenant_id, i.namespace collate "C", i.key collate "C"';

/** Selects the row of the claim that the input settles or extends, even if its lease has run out. */
export const OWN_CLAIM = `${equalKeys("r", "i")}
     and r.fencing_token = i.fencing_token
     and r.state = ${STATE.inProgress}
     and r.expires_at > now()`;

const RESULT_BYTES = "octet_length(r.result_payload) + coalesce(octet_length(r.result_metadata), 0)";

/** Selects the stored result and its size; of one larger than MAX_INLINE_RESULT_BYTES only the size. */
export const INLINE_RESULT = `case when ${RESULT_BYTES} <= ${MAX_INLINE_RESULT_BYTES} then r.result_metadata end as result_metadata,
       case when ${RESULT_BYTES} <= ${MAX_INLINE_RESULT_BYTES} then r.result_payload end as result_payload,
       ${RESULT_BYTES} as result_bytes,
       r.result_key_id, r.checkpoint_key_id`;

/** The retention of a completed key and of its result, in seconds: those stamped at the claim, the key's perhaps shortened. */
export const KEY_RETENTION_S = "coalesce(i.key_retention_s, r.key_retention_s)";
export const RESULT_RETENTION_S = `least(
      ${KEY_RETENTION_S},
      case when i.result_kind = ${RESULT_KIND.success} then r.result_retention_s else r.failure_retention_s end)`;

/** What an update sets when a claim is completed. */
export const COMPLETE_COLUMNS = `state = ${STATE.completed},
    settled_at = now(),
    expires_at = now() + ${KEY_RETENTION_S} * interval '1 second',
    result_expires_at = now() + ${RESULT_RETENTION_S} * interval '1 second',
    result_kind = i.result_kind,
    result_digest = i.result_digest,
    result_payload = i.result_payload,
    result_content_type = i.result_content_type,
    result_key_id = i.result_key_id,
    result_metadata = i.result_metadata`;

/** The highest token of the key: perhaps that of a claim that was given back, which a resolution may follow. */
export const HIGHEST_TOKEN = `greatest(r.fencing_token, (r.past_attempts -> -1 ->> 'token')::bigint,
                  (r.past_attempts -> -2 ->> 'token')::bigint)`;

/** Whether the newest attempt has been appended to the past ones: by an administrator's resolution. */
export const IS_APPENDED = "r.past_attempts -> -1 ->> 'token' = r.fencing_token::text";

/** The end of a `case` that makes room for one more of the MAX_ATTEMPTS_SHOWN past attempts. */
export const WITH_ROOM = `when jsonb_array_length(r.past_attempts) >= ${MAX_ATTEMPTS_SHOWN} then r.past_attempts - 0
           else coalesce(r.past_attempts, '[]') end`;

/** Returns the attempt that ends, as admin/records/get-record.ts reads it, of expressions for what the row lacks. */
export function endedAttempt(of: { ended: string; ending: string; reason: string; job?: string }): string {
  const job = of.job === undefined ? ["", ""] : [", 'job'", `, ${of.job}`];
  return `jsonb_strip_nulls(jsonb_object(
           array['attempt', 'token', 'owner', 'claimed', 'checkpoint', 'ended', 'ending', 'reason', 'holds', 'pending'${job[0]}],
           array[r.attempt::text, r.fencing_token::text, r.owner,
                 trim_scale(extract(epoch from r.claimed_at - to_timestamp(0)) * 1000)::text, r.checkpoint_name,
                 ${of.ended}, ${of.ending}, left(${of.reason}, ${MAX_REASON_CHARACTERS}),
                 case when r.holds_on_lease_expiry then coalesce(r.reclaim_within_s, 0)::text end,
                 case when ${IS_PENDING} then 'true' end${job[1]}]))`;
}
