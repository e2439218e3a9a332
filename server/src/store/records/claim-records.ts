import { answerClaim, type ClaimCommand, type ClaimOutcome, claimed } from "../../domain/claim.ts";
import type { Deadline } from "../../domain/deadline.ts";
import type { LiveRecord, Result } from "../../domain/record.ts";
import { createReplyRoom } from "../../domain/reply-room.ts";
import { awaitLate, type Settled } from "../../domain/settled.ts";
import type { TenantLimiter } from "../batching/tenant-limiter.ts";
import type { Pool } from "../pool.ts";
import { APPLIED, attemptAll, createAttempts, readApplied } from "./attempts.ts";
import { type ClaimInput, COLUMNS, columnsOf, PARAMETERS, parametersOf } from "./claim-inputs.ts";
import {
  GRANTED,
  GRANTED_ALONE,
  GRANTED_COLUMNS,
  type GrantedRow,
  type Granting,
  readGranted,
  readGrantedAlone,
} from "./granted-claims.ts";
import type { FillPayload } from "./large-payloads.ts";
import type { Readings } from "./read-records.ts";
import type { RecordRow } from "./record-row.ts";

/** What a claim writes. */
const CLAIMED_COLUMNS = `
    tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry, accepts_ambiguous, lease_ms,
    key_retention_s, result_retention_s, failure_retention_s, first_claimed_at, claimed_at, lease_expires_at,
    expires_at, sweep_at, claim_id, owner, fingerprint`;

/** What is put there for a key that is not in use. */
function claimedValues(of: (name: ClaimInput) => string, token: string): string {
  return `
         ${of("tenant_id")}, ${of("namespace")}, ${of("key")}, ${token}, 1, 1,
         ${of("holds_on_lease_expiry")}, ${of("accepts_ambiguous")}, ${of("lease_ms")},
         ${of("key_retention_s")}, ${of("result_retention_s")}, ${of("failure_retention_s")},
         now(), now(), now() + ${of("lease_ms")} * interval '1 millisecond',
         now() + greatest(${of("key_retention_s")} * 1000::bigint, ${of("lease_ms")}) * interval '1 millisecond',
         now() + (least(${of("key_retention_s")}, ${of("result_retention_s")}, ${of("failure_retention_s")}) * 1000::bigint
                  + ${of("lease_ms")} + 120000) * interval '1 millisecond',
         ${of("claim_id")}, ${of("owner")}, ${of("fingerprint")}`;
}

/** The claims of a statement for many, with their places, in the order of their key: two batches never wait for each other. */
const DRAWN_AND_INPUT = `
drawn as materialized (
  select nextval('fencing_tokens') as token
), input as materialized (
  select *
    from (select ${COLUMNS},
                 generate_subscripts($1::int[], 1) as place) as i
   order by i.tenant_id, i.namespace collate "C", i.key collate "C"
)`;

const INSERTED = `
  insert into records as r (${CLAIMED_COLUMNS})
  select ${claimedValues((name) => `i.${name}`, "(select token from drawn) + i.place")}
    from input i`;

/** A row that is there is neither locked nor changed; one that another transaction is about to insert is waited for. */
const UNLESS_IN_USE = "on conflict (tenant_id, namespace, key) do nothing";

/**
 * Claims the keys that are not in use, of many at once: the unique constraint decides. What was granted is answered in one
 * row.
 */
const claimRecords = {
  name: "claim_records",
  text: `
with ${DRAWN_AND_INPUT}, applied as (${INSERTED}
  ${UNLESS_IN_USE}
  returning ${GRANTED_COLUMNS}
)
${GRANTED}`,
};

/** The same for one key: without what many take, a third less of Postgres. */
const claimRecord = {
  name: "claim_record",
  text: `
insert into records as r (${CLAIMED_COLUMNS})
values (${claimedValues((name) => PARAMETERS[name], "nextval('fencing_tokens')")})
${UNLESS_IN_USE}
returning ${GRANTED_ALONE}`,
};

/**
 * Claims keys whose records could be had when they were looked at. What may be taken over is a row that is forgotten or whose
 * retention settled (a new life: attempt 1), or, unless the fingerprints differ, one that was released or whose lease ran out
 * (the same life: attempt + 1): decided anew, under the row's lock. The conditions compare with excluded.claimed_at rather
 * than now(), because Citus allows only immutable functions there.
 */
const takeOverRecords = {
  name: "take_over_records",
  text: `
with ${DRAWN_AND_INPUT}, applied as (${INSERTED}
  on conflict (tenant_id, namespace, key) do update set
    fencing_token = greatest(excluded.fencing_token, r.fencing_token + 1),
    state = 1,
    attempt = case when r.state <> 0 and r.expires_at > excluded.claimed_at then r.attempt + 1 else 1 end,
    holds_on_lease_expiry = excluded.holds_on_lease_expiry,
    accepts_ambiguous = excluded.accepts_ambiguous,
    lease_ms = excluded.lease_ms,
    key_retention_s = excluded.key_retention_s,
    result_retention_s = excluded.result_retention_s,
    failure_retention_s = excluded.failure_retention_s,
    first_claimed_at = case when r.state <> 0 and r.expires_at > excluded.claimed_at
                            then r.first_claimed_at else excluded.first_claimed_at end,
    claimed_at = excluded.claimed_at,
    lease_expires_at = excluded.lease_expires_at,
    settled_at = null,
    expires_at = excluded.expires_at,
    result_expires_at = null,
    claim_id = excluded.claim_id,
    owner = excluded.owner,
    fingerprint = case when r.state <> 0 and r.expires_at > excluded.claimed_at
                       then coalesce(r.fingerprint, excluded.fingerprint) else excluded.fingerprint end,
    checkpoint_name = case when r.state <> 0 and r.expires_at > excluded.claimed_at then r.checkpoint_name end,
    checkpoint_state = case when r.state <> 0 and r.expires_at > excluded.claimed_at then r.checkpoint_state end,
    release_reason = null,
    result_kind = null,
    result_digest = null,
    result_payload = null,
    result_content_type = null,
    result_metadata = null
  where r.state = 0
     or r.expires_at <= excluded.claimed_at
     or ((r.fingerprint is null or excluded.fingerprint is null or r.fingerprint = excluded.fingerprint)
         and (r.state = 3
              or (r.state = 1
                  and r.lease_expires_at <= excluded.claimed_at
                  and (not r.holds_on_lease_expiry or excluded.accepts_ambiguous))))
  returning r.*
)
${APPLIED}`,
};

/** While one commits, another runs and a third is on its way. More would only make batches smaller. */
const MAX_IN_FLIGHT = 3;
const MAX_TAKING_OVER = 1;

/** Asks for the right to perform the side effect of each key; every claim ends by itself, in its place. */
export type ClaimRecords = (
  commands: readonly ClaimCommand[],
  deadline: Deadline,
) => Promise<readonly Settled<ClaimOutcome>[]>;

/** @returns what claims records, batched over all its callers; it refuses with what `answerClaim` does. */
export function createClaimRecords(
  pool: Pool,
  readings: Readings,
  fillPayload: FillPayload,
  limiter: TenantLimiter,
): ClaimRecords {
  const insertions = createAttempts<ClaimCommand, GrantedRow>(pool, readings, {
    statement: claimRecords,
    columns: columnsOf,
    async alone(command) {
      const [granted] = await pool.run<Granting>(claimRecord, parametersOf(command));
      return granted && readGrantedAlone(granted, command);
    },
    readMade: readGranted,
    meet: (granted) => granted,
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  const takeOvers = createAttempts<ClaimCommand, RecordRow>(pool, readings, {
    statement: takeOverRecords,
    columns: columnsOf,
    readMade: readApplied,
    meet: (granted) => granted,
    maxInFlight: MAX_TAKING_OVER,
    limiter,
  });
  return async (commands, deadline) => {
    const outcomes = await attemptAll(
      insertions,
      commands,
      deadline,
      ({ applied, record }, command) => (applied ? claimed(record, false) : answerClaim(record, command)),
      takeOvers,
    );
    const room = createReplyRoom();
    return await awaitLate(outcomes, (outcome) => {
      if (outcome.kind !== "completed" || outcome.record === undefined) return undefined;
      const filling = fillPayload(outcome.record, deadline, room);
      return filling?.then((record) => ({ ...outcome, record, result: resultOf(record) }));
    });
  };
}

function resultOf({ phase }: LiveRecord): Result | undefined {
  return phase.kind === "completed" ? phase.result : undefined;
}
