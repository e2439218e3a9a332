-- The tables of @onceward/client/inbox, version 1. Run it in the caller's own Postgres (15 or later), in the
-- database with the tables of the effects. It is one statement, so that any migration tool applies all of it
-- or nothing. It may be run again: existing tables and indexes are not changed.
do $onceward$
begin
  -- Concurrent migrations run one after the other.
  perform pg_advisory_xact_lock(hashtextextended('onceward inbox', 0));

  -- Handled messages by consumer. Only the unique constraint decides whether a message was handled.
  create table if not exists onceward_inbox (
    consumer text collate "C" not null,
    key text collate "C" not null,
    fingerprint bytea,
    -- JSON; null for undefined.
    result text,
    received_at timestamptz not null default now(),
    primary key (consumer, key)
  -- Free space for the result, which an update stores: the row stays on its page, and no index changes.
  ) with (fillfactor = 80);
  -- For the sweep.
  create index if not exists onceward_inbox_received_at on onceward_inbox (received_at);

  -- Completions to deliver to the service. A row is kept after its delivery, to refuse a stalled holder.
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
    -- Why the service will never accept it: a reason of errors.proto.
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
