-- The pepper of API keys (ONCEWARD_API_KEY_PEPPER) as a mark that tells peppers apart: HMAC-SHA256 under the pepper. No row: no replica
-- has started yet. A table of its own, because the row of `installation` must never be written again: its transaction
-- identifies the database.
create table pepper_check (
  is_only boolean primary key default true check (is_only),
  mark bytea not null check (octet_length(mark) = 32)
);

-- The mark of the pepper of the key's digest; null: not known. Replicas of an earlier version store none.
alter table api_keys add column pepper_mark bytea;
