import { INBOX_MIGRATION } from "../../../clients/typescript/src/inbox.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database/database.ts";

/** A row of a caller's own table, which has no constraint against duplicates. */
export interface EffectRow {
  readonly key: string;
  readonly value: string;
}

/** A caller's own database, with the inbox and a table of effects. */
export interface CallerDatabase extends TestDatabase {
  /** Returns the effects of a key, oldest first. */
  effects(key: string): Promise<EffectRow[]>;
}

/** The statement that writes an effect. */
export const INSERT_EFFECT = "insert into effects (key, value) values ($1, $2)";

/** Creates a caller's database, separate from the service's. */
export async function createCallerDatabase(): Promise<CallerDatabase> {
  const database = await createTestDatabase("template0");
  await database.query(INBOX_MIGRATION);
  await database.query(
    "create table effects (id int generated always as identity, key text not null, value text not null)",
  );
  return {
    ...database,
    effects: (key) =>
      database.query<EffectRow>("select key, value from effects where key = $1 order by id", [key]),
  };
}
