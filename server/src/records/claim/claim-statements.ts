import { nowBy } from "../../database/now-by.ts";
import { booleanArray, byteaArray, float8Array, intArray, textArray } from "../../database/sql-arrays.ts";
import {
  FENCING_MARGIN_MS,
  IS_PENDING,
  RESULT_KIND,
  type RecordRow,
  STATE,
  WRITTEN_SELECT,
} from "../engine/record-row.ts";
import {
  endedAttempt,
  equalKeys,
  HIGHEST_TOKEN,
  IN_KEY_ORDER,
  IS_APPENDED,
  isHeld,
  WITH_ROOM,
} from "../engine/record-sql.ts";
import type { ClaimCommand } from "../record.ts";

/*
 * The statements of a claim. All three take the same parameters, as values or as arrays, and insert the same columns. The
 * batches have one more, the latest time at which each claim may create a new record, in milliseconds since the
 * Unix epoch; null: no limit. A take-over also has the latest time that it may take for now.
 * A claim with a lease of 0 ms completes its record itself (`completesItself`). README.md says how statements on records are
 * written.
 */

/** The parameters of one claim in their order, with their types. */
const PARAMETERS: Readonly<Record<string, string>> = {
  tenant_id: "int",
  namespace: "text",
  key: "text",
  fingerprint: "bytea",
  claim_id: "text",
  owner: "text",
  accepts_ambiguous: "boolean",
  reclaim_within_s: "int",
  lease_ms: "int",
  key_retention_s: "int",
  result_retention_s: "int",
  failure_retention_s: "int",
  marks_begin: "boolean",
};

/** The expressions of a new row: of a command's columns, and of its token. */
interface RowSource {
  readonly of: (column: string) => string;
  readonly token: string;
}

/** A value that each statement of a claim reads once, before it reads or writes a row. */
export const TOKEN_FLOOR = "$14::bigint";
const CLOCK = `greatest((extract(epoch from clock_timestamp()) * 1000000)::bigint, ${TOKEN_FLOOR})`;
const OF_ONE: RowSource = {
  of: (column) => `$${Object.keys(PARAMETERS).indexOf(column) + 1}::${PARAMETERS[column]}`,
  token: `${CLOCK} + 1`,
};
const OF_MANY: RowSource = { of: (column) => `i.${column}`, token: "(select token from clock) + i.ordinal" };

/** The commands of a batch, in the order of their keys, and the clock. */
const INPUT = `with clock as materialized (
  select ${CLOCK} as token
), input as materialized (
  select *
    from (select ${Object.entries(PARAMETERS)
      .map(([name, type], index) => `unnest($${index + 1}::${type}[]) as ${name}`)
      .join(", ")},
                 unnest($15::float8[]) as accepted_until_ms,
                 generate_subscripts($1::int[], 1) as ordinal) as i
   ${IN_KEY_ORDER}
)`;

/** Whether a key may begin a new life. */
const IS_YOUNG = "i.accepted_until_ms is null or extract(epoch from now()) * 1000 < i.accepted_until_ms";

const INSERT = `insert into records as r (
    tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry, reclaim_within_s, accepts_ambiguous,
    lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at, claimed_at, lease_expires_at,
    expires_at, sweep_at, claim_id, owner, fingerprint, pending_until, settled_at, result_expires_at, result_kind)`;

/** Returns the values of INSERT's columns. `unless`: the condition on which the key is claimed; unset: always. */
function newRow({ of, token }: RowSource, unless = ""): string {
  const retentionsS = ["key_retention_s", "result_retention_s", "failure_retention_s"].map(of).join(", ");
  const completes = `when ${of("lease_ms")} = 0 then`;
  return `${["tenant_id", "namespace", "key"].map(of).join(", ")}, ${token},
         case ${unless} ${completes} ${STATE.completed} else ${STATE.inProgress} end, 1,
         ${of("reclaim_within_s")} is not null, nullif(${of("reclaim_within_s")}, 0),
         ${["accepts_ambiguous", "lease_ms"].map(of).join(", ")}, ${retentionsS},
         now(), now(), now() + ${of("lease_ms")} * interval '1 millisecond',
         now() + greatest(${of("key_retention_s")} * 1000::bigint, ${of("lease_ms")}) * interval '1 millisecond',
         now() + (least(${retentionsS}) * 1000::bigint
                  + ${of("lease_ms")} + ${FENCING_MARGIN_MS}) * interval '1 millisecond',
         ${["claim_id", "owner", "fingerprint"].map(of).join(", ")},
         case when ${of("marks_begin")} then now() + ${of("lease_ms")} * interval '1 millisecond' end,
         case ${completes} now() end,
         case ${completes} now() + ${of("key_retention_s")} * interval '1 second' end,
         case ${completes} ${RESULT_KIND.success} end`;
}

/** The latest time that a take-over may take for now. */
const LATEST = "least(excluded.claimed_at, to_timestamp($16::float8 / 1000))";
const SAME_LIFE = `r.state <> ${STATE.forgotten} and r.expires_at > ${LATEST}`;
/** Whether the claim that is taken over may have had its effect, unknown to all. */
const IS_UNKNOWN = `${SAME_LIFE} and r.state = ${STATE.inProgress} and not ${IS_PENDING}`;
const LIFE_ENDED = `r.state = ${STATE.forgotten} or r.expires_at <= ${LATEST}`;

/**
 * Claims the keys that are not in use, of many commands: the unique constraint decides. An existing row is
 * neither locked nor changed, and a row that another transaction is inserting is waited for. A key that is too
 * old is not inserted: by the clock that is returned, so that the caller knows.
 *
 * Tokens are microseconds of the database's clock, and never below the floor $14
 * (server/decisions/0025-tokens-from-the-clock.md). The clock is read once, and ordinals count from 1, so a token tells
 * which command it belongs to. Everything that was granted is returned in one row and
 * one column, because a row for each costs time for its columns in Postgres and here. It lists ordinals, and
 * not even those if all commands were granted: a new record follows from its command and the time.
 *
 * Arrays that are unnested side by side in a select list take one pass. A function in `from` for all of them
 * would first materialize each array's rows.
 */
export const claimRecords = {
  name: "claim_records",
  text: `
${INPUT}, applied as (
  ${INSERT}
  select ${newRow(OF_MANY)}
    from input i
   where ${IS_YOUNG}
  on conflict (tenant_id, namespace, key) do nothing
  returning fencing_token - (select token from clock) as ordinal
)
select json_build_object(
         'baseToken', (select token from clock),
         'grantedAtMs', extract(epoch from now()) * 1000,
         'answeredAtMs', extract(epoch from clock_timestamp()) * 1000,
         'ordinals', case when count(*) < cardinality($1::int[]) then coalesce(array_agg(a.ordinal), '{}') end
       ) as granted
  from applied a`,
};

/**
 * Claims one key that is not in use, and may begin a new life at any time. Without arrays and sorting it costs
 * Postgres a third less than `claim_records`.
 */
export const claimRecord = {
  name: "claim_record",
  text: `
with granted as (
  ${INSERT}
  values (${newRow(OF_ONE)})
  on conflict (tenant_id, namespace, key) do nothing
  returning r.fencing_token, r.claimed_at
)
select (g.fencing_token - 1)::numeric as "baseToken",
       extract(epoch from g.claimed_at) * 1000 as "grantedAtMs",
       extract(epoch from clock_timestamp()) * 1000 as "answeredAtMs"
  from granted g`,
};

/**
 * Claims keys whose records were free when they were read; decides again, under the row's lock. A row may be
 * taken over if it is forgotten or its retention has ended: a new life, attempt 1, unless the key is too old.
 * Unless the fingerprints differ, it may also be taken over if it was released or its lease has run out: the
 * same life, attempt + 1. A key without a row is inserted. If the key is too old, and its record was deleted
 * since it was read, the inserted row is a forgotten one, which answers nothing.
 *
 * A retention that ends later than $16, in milliseconds since the Unix epoch, has not ended, regardless of what now() is: the
 * database's clock may have been set forward (domain/database-clock.ts). `least` skips a null.
 *
 * `ended` has the rows of lives that have ended, as they were before this statement: for statistics only; it
 * does not affect the decision. An object finds them by their names, because a join of both would compare each row with each other row.
 *
 * The conditions compare with excluded.claimed_at rather than now(), because Citus allows only immutable
 * functions there. Hence also jsonb_object, whose values are texts.
 *
 * The attempt that ends is appended to the row's past ones (admin/records/get-record.ts), unless an administrator's
 * resolution has done so: then the last one has the row's token.
 *
 * While the outcome is unknown, retention is not shortened: the key would be free before it is known.
 */
export const takeOverRecords = {
  name: "take_over_records",
  text: `
${INPUT}, ended as materialized (
  select jsonb_build_array(was.tenant_id, was.namespace, was.key)::text as name,
         extract(epoch from was.first_claimed_at) * 1000 as first_claimed_at_ms
    from input i
    join records was
      on ${equalKeys("was", "i")}
   where was.state <> ${STATE.forgotten}
     and was.expires_at <= ${nowBy("$16")}
), applied as (
  ${INSERT}
  select ${newRow(OF_MANY, `when not (${IS_YOUNG}) then ${STATE.forgotten}`)}
    from input i
  on conflict (tenant_id, namespace, key) do update set
    fencing_token = greatest(excluded.fencing_token, ${HIGHEST_TOKEN} + 1),
    state = case when excluded.settled_at is null then ${STATE.inProgress} else ${STATE.completed} end,
    attempt = case when ${SAME_LIFE} then r.attempt + 1 else 1 end,
    holds_on_lease_expiry = excluded.holds_on_lease_expiry,
    reclaim_within_s = excluded.reclaim_within_s,
    accepts_ambiguous = excluded.accepts_ambiguous,
    lease_ms = excluded.lease_ms,
    key_retention_s = excluded.key_retention_s,
    result_retention_s = excluded.result_retention_s,
    failure_retention_s = excluded.failure_retention_s,
    first_claimed_at = case when ${SAME_LIFE} then r.first_claimed_at else excluded.first_claimed_at end,
    claimed_at = excluded.claimed_at,
    lease_expires_at = excluded.lease_expires_at,
    unknown_since = case when ${IS_UNKNOWN} then r.lease_expires_at end,
    pending_until = case when not (${IS_UNKNOWN}) then excluded.pending_until end,
    settled_at = excluded.settled_at,
    expires_at = greatest(case when ${IS_UNKNOWN} then r.expires_at end, excluded.expires_at),
    result_expires_at = excluded.result_expires_at,
    claim_id = excluded.claim_id,
    owner = excluded.owner,
    fingerprint = case when ${SAME_LIFE} then coalesce(r.fingerprint, excluded.fingerprint) else excluded.fingerprint end,
    checkpoint_name = case when ${SAME_LIFE} then r.checkpoint_name end,
    checkpoint_state = case when ${SAME_LIFE} then r.checkpoint_state end,
    past_attempts = case
      when ${LIFE_ENDED} then null
      when ${IS_APPENDED} then r.past_attempts
      else case ${WITH_ROOM}
           || ${endedAttempt({
             ended:
               "trim_scale(extract(epoch from coalesce(r.settled_at, excluded.claimed_at) - to_timestamp(0)) * 1000)::text",
             ending: `case when r.state = ${STATE.released} then 'released' else 'superseded' end`,
             reason: "r.release_reason",
           })} end,
    checkpoint_key_id = case when ${SAME_LIFE} then r.checkpoint_key_id end,
    release_reason = null,
    result_key_id = null,
    result_kind = excluded.result_kind,
    result_digest = null,
    result_payload = null,
    result_content_type = null,
    result_metadata = null
  where ((${LIFE_ENDED}) and excluded.state <> ${STATE.forgotten})
     or (r.expires_at > ${LATEST}
         and (r.fingerprint is null or excluded.fingerprint is null or r.fingerprint = excluded.fingerprint)
         and (r.state = ${STATE.released}
              or (r.state = ${STATE.inProgress}
                  and r.lease_expires_at <= excluded.claimed_at
                  and (not ${isHeld("excluded.claimed_at", "$16")} or excluded.accepts_ambiguous))))
  returning r.*
)
select ${WRITTEN_SELECT},
       r.checkpoint_key_id,
       ((select jsonb_object_agg(e.name, e.first_claimed_at_ms) from ended e)
          ->> jsonb_build_array(r.tenant_id, r.namespace, r.key)::text)::numeric as ended_first_claimed_at_ms
  from (select 1) as always
  left join applied r on true`,
};

/** Returns the parameters of `claim_record`. `tokenFloor`: as TokenFloor.current. */
export function claimParameters(command: ClaimCommand, tokenFloor: number): readonly unknown[] {
  return [
    command.id.tenantId,
    command.id.namespace,
    command.id.key,
    command.fingerprint,
    command.claimId,
    command.owner,
    command.acceptAmbiguous,
    command.reclaimWithinS ?? null,
    command.leaseMs,
    command.keyRetentionS,
    command.resultRetentionS,
    command.failureRetentionS,
    command.marksBegin,
    tokenFloor,
  ];
}

/**
 * Returns the parameters of `claim_records`: the same, as arrays but for the floor, and until when each claim may begin a
 * new life.
 */
export function claimArrays(commands: readonly ClaimCommand[], tokenFloor: number): readonly unknown[] {
  return [
    intArray(commands.map((command) => command.id.tenantId)),
    textArray(commands.map((command) => command.id.namespace)),
    textArray(commands.map((command) => command.id.key)),
    byteaArray(commands.map((command) => command.fingerprint)),
    textArray(commands.map((command) => command.claimId)),
    textArray(commands.map((command) => command.owner)),
    booleanArray(commands.map((command) => command.acceptAmbiguous)),
    intArray(commands.map((command) => command.reclaimWithinS)),
    intArray(commands.map((command) => command.leaseMs)),
    intArray(commands.map((command) => command.keyRetentionS)),
    intArray(commands.map((command) => command.resultRetentionS)),
    intArray(commands.map((command) => command.failureRetentionS)),
    booleanArray(commands.map((command) => command.marksBegin)),
    tokenFloor,
    float8Array(commands.map((command) => command.acceptedUntilMs)),
  ];
}

/** Returns the parameters of `take_over_records`. `latestMs`: as DatabaseClock. */
export function takeOverParameters(
  commands: readonly ClaimCommand[],
  tokenFloor: number,
  latestMs: number | undefined,
): readonly unknown[] {
  return [...claimArrays(commands, tokenFloor), latestMs ?? null];
}

/** When a claim statement ran, and from where it numbered its tokens. Also the row of `claim_record`. */
export interface Grant {
  /** The command with ordinal n got the token `baseToken + n`. */
  readonly baseToken: number;
  readonly grantedAtMs: number;
  readonly answeredAtMs: number;
}

/** The row of `claim_records`. */
export interface GrantedRow {
  readonly granted: Grant & {
    /** The commands that were granted, counted from 1. Null: all of them. */
    readonly ordinals: readonly number[] | null;
  };
}

/** A row of `take_over_records`: what it took over, or the only row if that is nothing. */
export type TakenOverRow = RecordRow | { readonly tenant_id: null; readonly now_ms: number };

/** Whether a row of `take_over_records` is a record. */
export function isTakenOver(row: TakenOverRow): row is RecordRow {
  return row.tenant_id !== null;
}
