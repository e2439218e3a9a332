-- Up Migration

-- What a replica refused in the last minute, by tenant, namespace, API key and reason.
alter table usage_now add column refused jsonb not null default '{}';
