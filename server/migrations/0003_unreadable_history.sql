-- Up Migration

-- Calls on a key that were refused because its record cannot be decrypted.
alter table key_histories add column unreadable bigint not null default 0;
