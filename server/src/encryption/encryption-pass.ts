import type { Runner } from "../database/pool.ts";
import type { RecordId } from "../records/record.ts";

/** What a page of a pass did. */
export interface PassPage {
  readonly examined: number;
  readonly changed: number;
  /** Records that another statement changed in between. */
  readonly skipped: number;
  readonly unreadable: number;
  /** The last examined record, after which the next page begins; undefined: the pass is finished. */
  readonly after: RecordId | undefined;
}

/** How far the pass of an installation has come. */
export interface PassProgress extends Omit<PassPage, "after"> {
  /** The key that it encrypts under; null: it decrypts. */
  readonly keyId: number | null;
  readonly finished: boolean;
  readonly startedAtMs: number;
}

const beginPass = {
  name: "begin_encryption_pass",
  text: `
insert into encryption_pass as p (key_id)
values ($1::smallint)
on conflict (is_only) do update set
  key_id = excluded.key_id,
  after_tenant_id = 0,
  after_namespace = '',
  after_key = '',
  started_at = now(),
  finished_at = null,
  records_examined = 0,
  records_changed = 0,
  records_skipped = 0,
  records_unreadable = 0,
  next_page_at = now()
 where p.key_id is distinct from excluded.key_id
    or (p.finished_at is not null and p.records_unreadable > 0)`,
};

/**
 * Begins a pass that encrypts all records under a key, or decrypts them; not if the last pass was for the same
 * key, unless it ended with unreadable records: the replica that starts may have the key that was missing.
 * Replicas with another current key then leave the pass alone: the replica that was started last decides.
 */
export async function beginEncryptionPass(runner: Runner, keyId: number | null): Promise<void> {
  await runner.run(beginPass, [keyId]);
}

/** The pages of a pass follow each other within seconds, unless the database's clock was ahead and is right again. */
const takePage = {
  name: "take_encryption_page",
  text: `
select p.after_tenant_id as "tenantId", p.after_namespace as namespace, p.after_key as key
  from encryption_pass p
 where p.key_id is not distinct from $1::smallint
   and (p.next_page_at <= now() or (p.finished_at is null and p.next_page_at > now() + interval '600 s'))
   for update skip locked`,
};

/**
 * Takes the next page, for as long as the transaction lasts.
 *
 * @returns the last record of the page before; undefined if no page is due, another replica has taken it, or the pass is for another key.
 */
export async function takeEncryptionPage(
  transaction: Runner,
  keyId: number | null,
): Promise<RecordId | undefined> {
  const [position] = await transaction.run<RecordId>(takePage, [keyId]);
  return position;
}

/**
 * A finished pass that changed records is followed by another one, because replicas that were started with the
 * other order of keys may have written after it.
 */
const advancePass = {
  name: "advance_encryption_pass",
  text: `
update encryption_pass p set
  after_tenant_id = $1::int,
  after_namespace = $2::text,
  after_key = $3::text,
  started_at = case when p.finished_at is null then p.started_at else now() end,
  finished_at = case when $4::boolean then now() end,
  records_examined = case when p.finished_at is null then p.records_examined else 0 end + $5::int,
  records_changed = case when p.finished_at is null then p.records_changed else 0 end + $6::int,
  records_skipped = case when p.finished_at is null then p.records_skipped else 0 end + $7::int,
  records_unreadable = case when p.finished_at is null then p.records_unreadable else 0 end + $8::int,
  next_page_at = now() + case
    when not $4::boolean then $9::float8 * interval '1 second'
    when $6::int + $7::int > 0 or (p.finished_at is null and p.records_changed + p.records_skipped > 0)
      then interval '1 minute'
    else interval '1 day' end`,
};

const FROM_THE_START: RecordId = { tenantId: 0, namespace: "", key: "" };

/** Stores what a page did. The next one is due after `pauseS` seconds. */
export async function advanceEncryptionPass(
  transaction: Runner,
  { examined, changed, skipped, unreadable, after = FROM_THE_START }: PassPage,
  pauseS: number,
): Promise<void> {
  const { tenantId, namespace, key } = after;
  const isFinished = after === FROM_THE_START;
  await transaction.run(advancePass, [
    ...[tenantId, namespace, key, isFinished],
    ...[examined, changed, skipped, unreadable, pauseS],
  ]);
}

const readPass = {
  name: "read_encryption_pass",
  text: `
select p.key_id as "keyId", p.finished_at is not null as finished, p.records_examined::numeric as examined,
       p.records_changed::numeric as changed, p.records_skipped::numeric as skipped,
       p.records_unreadable::numeric as unreadable, extract(epoch from p.started_at) * 1000 as "startedAtMs"
  from encryption_pass p`,
};

/** Returns the installation's newest pass; undefined if no server with keys has ever used the database. */
export async function readEncryptionPass(runner: Runner): Promise<PassProgress | undefined> {
  const [progress] = await runner.run<PassProgress>(readPass, []);
  return progress;
}
