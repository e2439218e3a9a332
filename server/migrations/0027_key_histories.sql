-- Up Migration

-- What came of claims of a key that did not get it (server/decisions/0028-the-history-of-a-key.md). A tenant has at most one row a
-- slot: a key takes the slot of its hash, and with it the row of the key that had it before.
create table key_histories (
  tenant_id int not null references tenants (id) on delete cascade,
  slot int not null,
  namespace text not null collate "C",
  -- As in the names of records in audit events.
  key_hash bytea not null,
  replayed bigint not null,
  in_progress bigint not null,
  ambiguous bigint not null,
  mismatched bigint not null,
  too_old bigint not null,
  over_quota bigint not null,
  superseded bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- Some of them, in the order in which they were stored: milliseconds since the Unix epoch, outcome, actor, request id.
  calls jsonb not null,
  primary key (tenant_id, slot)
);
