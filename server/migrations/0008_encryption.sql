-- Up Migration

-- Which configured key encrypts the row's result (payload, metadata, digest) and its checkpoint's state; null: they are stored
-- in plain form.
alter table records
  add column result_key_id smallint,
  add column checkpoint_key_id smallint;

-- The pass over all records that encrypts them under the current key, as far as it has come. All replicas share one.
create table encryption_pass (
  is_only boolean primary key default true check (is_only),
  -- The key that the pass encrypts under; null: it decrypts.
  key_id smallint,
  -- The last record that was examined.
  after_tenant_id int not null default 0,
  after_namespace text collate "C" not null default '',
  after_key text collate "C" not null default '',
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  records_examined bigint not null default 0,
  records_changed bigint not null default 0,
  -- Records that another statement changed in between: the next pass takes them.
  records_skipped bigint not null default 0,
  records_unreadable bigint not null default 0,
  -- Bounds the rate. After a finished pass: when the next one begins.
  next_page_at timestamptz not null default now()
) with (fillfactor = 50);
