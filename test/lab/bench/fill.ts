import type { Station } from "./rig.ts";

/** The rows that a table is filled with. */
export interface Filling {
  readonly rows: number;
  readonly signal: AbortSignal;
  /** When the rows are due for the sweep. Undefined: spread over the next month. */
  readonly due?: Due;
}

/** Rows that become due one after another, evenly. */
export interface Due {
  readonly from: Date;
  readonly overMs: number;
}

/** Rows of one statement: bounded, so that the bench can be interrupted. */
const ROWS_PER_STATEMENT = 200_000;

/**
 * Inserts claims as the service would, with keys in random order: $1 tenant, $2 first number, $3 last number,
 * $4 when the first is due, $5 seconds from one to the next (null: spread over a month).
 */
const CLAIM = `
insert into records (
  tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry, accepts_ambiguous, lease_ms,
  key_retention_s, result_retention_s, failure_retention_s, first_claimed_at, claimed_at, lease_expires_at, expires_at,
  sweep_at, claim_id, owner, fingerprint
)
select $1::int, 'filled', md5($4::text || i), i, 1, 1, false, false, 60000,
       2592000, 2592000, 2592000, due - interval '30 days', due - interval '30 days', due - interval '29 days',
       due - interval '2 minutes', due, gen_random_uuid()::text, 'filler/1', sha256(i::text::bytea)
  from generate_series($2::int, $3::int) i,
       lateral (select $4::timestamptz + case
           when $5::float8 is null then random() * interval '30 days' + interval '1 hour'
           else i * $5::float8 * interval '1 second' end) as d (due)`;

/**
 * Completes them with a payload of 200 bytes, in an update of its own, so that pages have the room that the
 * service leaves for second row versions. Rows inserted as completed filled pages to a third and left gaps,
 * and each new claim then went into another old page. $1 tenant, $2 the page where the claims begin.
 */
const COMPLETE = `
update records set
       state = 2, settled_at = claimed_at, result_expires_at = expires_at, result_kind = 1, result_digest = fingerprint,
       result_content_type = 'application/json',
       result_payload = convert_to(rpad('{"status": "done", "token": ' || fencing_token || '}', 200), 'UTF8')
 where ctid >= $2::tid and tenant_id = $1::int and namespace = 'filled' and state = 1`;

/** Finds the page after the table's last one. */
const END =
  "select format('(%s,0)', pg_relation_size('records') / current_setting('block_size')::int) as page";

/** A lower bound of how fast Postgres fills a table on the machines that run the bench. */
const FILLED_PER_SECOND = 8000;

/** Returns how long filling a table takes at most, in milliseconds. */
export function fillingMs(rows: number): number {
  return 500 + (rows / FILLED_PER_SECOND) * 1000;
}

/**
 * Fills a table with completed records of a station's tenant, then vacuums and writes back, so that this work
 * is not measured.
 */
export async function fillRecords(
  { database, tenant }: Pick<Station, "database" | "tenant">,
  { rows, signal, due }: Filling,
): Promise<void> {
  const dueFrom = due?.from ?? new Date();
  const apartS = due === undefined ? null : due.overMs / 1000 / rows;
  for (let first = 1; first <= rows; first += ROWS_PER_STATEMENT) {
    signal.throwIfAborted();
    const last = Math.min(rows, first + ROWS_PER_STATEMENT - 1);
    const [end] = await database.query<{ page: string }>(END);
    await database.query(CLAIM, [tenant.id, first, last, dueFrom, apartS]);
    await database.query(COMPLETE, [tenant.id, end?.page]);
  }
  await database.query("vacuum (analyze) records");
  await database.query("checkpoint");
}
