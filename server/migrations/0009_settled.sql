-- Up Migration

-- Operations whose outcome was unknown, and that a later claim completed or released.
alter table usage_hours add column settled bigint not null default 0;
