import type { Station } from "./rig.ts";

/** What a table is filled with. */
export interface Filling {
  readonly rows: number;
  readonly signal: AbortSignal;
  /**
   * Retention of the rows ends one after another, evenly over so many milliseconds from when they are there, so that the
   * sweep has to remove them. Undefined: it ends some time in the next month.
   */
  readonly endedOverMs?: number;
}

/** Rows of one statement: bounded, so that the bench can be interrupted. */
const ROWS_PER_STATEMENT = 200_000;

/**
 * Completed records, as the service would have left them: keys in no order, a payload of 200 bytes. $1 tenant, $2 first
 * number, $3 last number, $4 when the first is due, $5 seconds from one to the next (null: spread over a month).
 */
const FILL = `
insert into records (
  tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry, accepts_ambiguous, lease_ms,
  key_retention_s, result_retention_s, failure_retention_s, first_claimed_at, claimed_at, settled_at, lease_expires_at,
  expires_at, sweep_at, result_expires_at, claim_id, owner, fingerprint, result_kind, result_digest,
  result_content_type, result_payload
)
select $1::int, 'filled', md5($4::text || i), nextval('fencing_tokens'), 2, 1, false, false, 60000,
       2592000, 2592000, 2592000, due - interval '30 days', due - interval '30 days', due - interval '30 days',
       due - interval '29 days', due - interval '2 minutes', due, due - interval '2 minutes', gen_random_uuid()::text,
       'filler/1', sha256(i::text::bytea), 1, sha256(i::text::bytea), 'application/json',
       convert_to(rpad('{"status": "done", "number": ' || i || '}', 200), 'UTF8')
  from generate_series($2::int, $3::int) i,
       lateral (select $4::timestamptz + case
           when $5::float8 is null then random() * interval '30 days' + interval '1 hour'
           else i * $5::float8 * interval '1 second' end) as d (due)`;

/** Slower than Postgres inserts them, so that the first row isn't due before the last one is there. */
const FILLED_PER_SECOND = 25_000;

/** Inserts rows for a station's tenant, one insert-select after another; returns when the first becomes due, if they do. */
export async function fillRecords(
  { database, tenant }: Pick<Station, "database" | "tenant">,
  { rows, signal, endedOverMs }: Filling,
): Promise<void> {
  const dueInMs = endedOverMs === undefined ? 0 : 500 + (rows / FILLED_PER_SECOND) * 1000;
  const dueFromMs = performance.now() + dueInMs;
  const dueFrom = new Date(Date.now() + dueInMs);
  const apartS = endedOverMs === undefined ? null : endedOverMs / 1000 / rows;
  for (let first = 1; first <= rows; first += ROWS_PER_STATEMENT) {
    signal.throwIfAborted();
    const last = Math.min(rows, first + ROWS_PER_STATEMENT - 1);
    await database.query(FILL, [tenant.id, first, last, dueFrom, apartS]);
  }
  await database.query("analyze records");
  if (endedOverMs === undefined) return;
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueFromMs - performance.now())));
}
