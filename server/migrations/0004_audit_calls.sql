-- Up Migration

-- How many calls an event stands for: denials of one kind within a minute are one event.
alter table audit_events add column calls int not null default 1 check (calls > 0);
