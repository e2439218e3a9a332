import { INBOX_MIGRATION } from "../../../clients/typescript/src/inbox.ts";
import { createTestDatabase, type TestDatabase } from "../../helpers/database/database.ts";

/** A row of a caller's own table, which no constraint keeps from being there twice. */
export interface EffectRow {
  readonly key: string;
  readonly value: string;
}

/** A database of a caller's own, with the inbox and a table that the effects are rows of. */
export interface CallerDatabase extends TestDatabase {
  /** The effects of a key, oldest first. */
  effects(key: string): Promise<EffectRow[]>;
}

/** What writes an effect. */
export const INSERT_EFFECT = "insert into effects (key, value) values ($1, $2)";

/** Makes one, apart from the service's. */
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
