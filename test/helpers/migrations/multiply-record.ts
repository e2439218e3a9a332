import type { OpenDatabase } from "../database/database.ts";

/** Copies the record of a key many times, under other keys, in the schema of any version. */
export async function multiplyRecord(database: OpenDatabase, key: string, copies: number): Promise<void> {
  const [columns] = await database.query<{ names: string }>(`
    select string_agg(quote_ident(attname), ', ') as names
      from pg_attribute
     where attrelid = 'records'::regclass
       and attnum > 0
       and not attisdropped
       and attgenerated = ''
       and attname <> 'key'`);
  const names = columns?.names;
  await database.query(
    `insert into records (key, ${names}) select 'copy-' || n, ${names} from records, generate_series(1, $2::int) n where key = $1`,
    [key, copies],
  );
}
