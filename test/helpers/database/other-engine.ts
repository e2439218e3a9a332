/** Makes a database answer `version()` as CockroachDB does, where `public` comes before `pg_catalog`. */
export const NAMED_COCKROACH =
  "create function public.version() returns text language sql as $$ select 'CockroachDB CCL v24.1.0 (x86_64)' $$";
