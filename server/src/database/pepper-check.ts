import type { Runner } from "./pool.ts";

const readPepperMark = { name: "read_pepper_mark", text: "select mark from pepper_check" };

/** Returns the mark of the pepper of the installation's API keys; undefined if none is stored yet. */
export async function findPepperMark(runner: Runner): Promise<Buffer | undefined> {
  const [row] = await runner.run<{ mark: Buffer }>(readPepperMark, []);
  return row?.mark;
}

/**
 * A database that accepts no writes is one for a moment, during a failover: the next start stores the mark.
 */
const storePepperMark = {
  name: "store_pepper_mark",
  text: `
insert into pepper_check as p (mark)
select $1::bytea
 where current_setting('transaction_read_only') = 'off'
on conflict (is_only) do update set mark = excluded.mark where p.mark = $2::bytea`,
};

/** Stores the mark if none is stored, or in place of `replaced`. */
export async function storeMark(
  runner: Runner,
  mark: Uint8Array,
  replaced: Uint8Array | undefined,
): Promise<void> {
  await runner.run(storePepperMark, [mark, replaced ?? null]);
}

const countKeysUnderOther = {
  name: "count_keys_under_other_pepper",
  text: `
select count(*)::int as count
  from api_keys
 where revoked_at is null
   and (expires_at is null or expires_at > now())
   and pepper_mark is distinct from $1::bytea`,
};

/**
 * Counts the valid API keys whose digest is not known to be under the pepper of this mark. Reads all keys:
 * for `doctor`.
 */
export async function countKeysUnderOtherPepper(runner: Runner, mark: Uint8Array): Promise<number> {
  const [row] = await runner.run<{ count: number }>(countKeysUnderOther, [mark]);
  return row?.count ?? 0;
}
