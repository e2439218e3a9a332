import type { OpenDatabase } from "./database.ts";

/**
 * Lets a test set a database's clock. Statements find `now` and `clock_timestamp` in a schema of the test's before those of
 * Postgres, which its own ones return with an offset. Connections that are open already keep Postgres' own clock. Each node of a
 * Citus has a clock of its own.
 */
export async function useSettableClock(database: Pick<OpenDatabase, "query">): Promise<void> {
  const [{ name } = { name: "" }] = await database.query<{ name: string }>(
    "select current_database() as name",
  );
  await database.query(`
    set citus.enable_ddl_propagation = off;
    create schema test_clock;
    create table test_clock.ahead (by interval not null);
    insert into test_clock.ahead values (interval '0');
    create function test_clock.now() returns timestamptz language sql stable
      return pg_catalog.now() + (select by from test_clock.ahead);
    create function test_clock.clock_timestamp() returns timestamptz language sql volatile
      return pg_catalog.clock_timestamp() + (select by from test_clock.ahead);
    alter database "${name}" set search_path = test_clock, pg_catalog, public`);
}

/** Sets the clock of a database after `useSettableClock` ahead by some minutes. */
export async function setClockAhead(database: Pick<OpenDatabase, "query">, minutes: number): Promise<void> {
  await database.query("update test_clock.ahead set by = $1::int * interval '1 minute'", [minutes]);
}
