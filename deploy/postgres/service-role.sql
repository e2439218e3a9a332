-- The role of the replicas, which owns nothing: it can neither change the schema nor remove the triggers that protect audit events.
-- Run by the owner after each `onceward-server migrate`; may be repeated:
--
--   psql --set ON_ERROR_STOP=1 --set password="$(cat service_password)" --file service-role.sql OWNER_URL

\if :{?password}
\else
  \set password `cat "$SERVICE_PASSWORD_FILE"`
\endif

begin;
-- One at a time: pods that start together would fail with "tuple concurrently updated".
do $$ begin perform pg_advisory_xact_lock(hashtext('onceward_service')); end $$;
select 'create role onceward_service login'
 where not exists (select from pg_roles where rolname = 'onceward_service') \gexec
-- Only if the role has more: an owner without SUPERUSER, as managed services give it, may not name these attributes.
select 'alter role onceward_service nosuperuser nocreatedb nocreaterole noreplication nobypassrls'
 where exists (
   select from pg_roles
    where rolname = 'onceward_service'
      and (rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls)
 ) \gexec
alter role onceward_service login password :'password';

grant usage on schema public to onceward_service;
grant select, insert, update, delete on all tables in schema public to onceward_service;
grant usage on all sequences in schema public to onceward_service;
-- Old events are deleted by the function prune_audit_events, which runs as the owner.
revoke update, delete on audit_events from onceward_service;
-- This table alone says which migrations ran.
revoke insert, update, delete on schema_migrations from onceward_service;

-- For tables of later migrations, before this file is run again.
alter default privileges in schema public grant select, insert, update, delete on tables to onceward_service;
alter default privileges in schema public grant usage on sequences to onceward_service;
commit;
