/**
 * What brings the inbox's tables, version 1, into the caller's own Postgres (15 or later): one idempotent statement,
 * for any migration tool. The package has the same text as the file `inbox.sql`.
 *
 * ```ts
 * await pool.query(INBOX_MIGRATION);
 * ```
 *
 * A later version's brings any earlier one up to date; the changelog says when there is one.
 */
export const INBOX_MIGRATION: string = `-- The tables of @onceward/client/inbox, version 1. It goes into the caller's own Postgres (15 or later), beside the
-- tables that the effects are rows of. It is one statement, so that any migration tool takes all of it or nothing, and
-- may be run again: whatever is there already stays as it is.
do $onceward$
begin
  -- Two processes that bring it at once go one after the other.
  perform pg_advisory_xact_lock(hashtextextended('onceward inbox', 0));

  -- What was handled, by consumer: the unique constraint is the only authority.
  create table if not exists onceward_inbox (
    consumer text collate "C" not null,
    key text collate "C" not null,
    fingerprint bytea,
    -- JSON; null for undefined.
    result text,
    received_at timestamptz not null default now(),
    primary key (consumer, key)
  -- Room for the result, which is stored by an update: the row stays on its page and out of the indexes.
  ) with (fillfactor = 80);
  -- For the sweep.
  create index if not exists onceward_inbox_received_at on onceward_inbox (received_at);

  -- What the service has to be told. A row outlives its delivery: it refuses a holder that was stalled meanwhile.
  create table if not exists onceward_completions (
    namespace text collate "C" not null,
    key text collate "C" not null,
    fencing_token bigint not null,
    -- An onceward.v1.Result; null only inside the transaction that writes it.
    result bytea,
    written_at timestamptz not null default now(),
    attempts int not null default 0,
    next_attempt_at timestamptz not null default now(),
    delivered_at timestamptz,
    -- Why the service will never take it, as a reason of errors.proto.
    undeliverable text,
    primary key (namespace, key)
  ) with (fillfactor = 80);
  -- For the relay.
  create index if not exists onceward_completions_due on onceward_completions (next_attempt_at)
    where delivered_at is null and undeliverable is null;
  -- For the sweep.
  create index if not exists onceward_completions_delivered_at on onceward_completions (delivered_at)
    where delivered_at is not null;

  comment on table onceward_inbox is 'Onceward inbox, version 1: what was handled.';
  comment on table onceward_completions is 'Onceward inbox, version 1: completions on their way to the service.';
end
$onceward$;
`;
