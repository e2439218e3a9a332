/** Makes a database answer `version()` as CockroachDB does, where `public` comes before `pg_catalog`. */
export const NAMED_COCKROACH =
  "create function public.version() returns text language sql as $$ select 'CockroachDB CCL v24.1.0 (x86_64)' $$";

/** Makes a database name a version of Postgres as its own, where `public` comes before `pg_catalog`. */
export const namedVersion = (num: number) => `
  create view public.pg_settings as
  select name, case name when 'server_version_num' then '${num}' else setting end as setting from pg_catalog.pg_settings`;
