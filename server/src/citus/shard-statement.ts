import type { Statement } from "../database/pool.ts";
import { TOKEN_FLOOR } from "../records/claim/claim-statements.ts";

/** A statement on the table of one shard, for the node that holds it. */
export interface ShardStatement extends Statement {
  readonly shard: number;
}

/** The first parameter of the other statements on many records, where they read it first. */
const FIRST_COLUMN = "unnest($1::int[]";
const RECORDS = /\brecords (?=(?:as )?(?:r|was)\b)/g;

/**
 * Returns a statement on records as a statement on the table of one shard. It holds the shard before it reads or
 * writes a row.
 */
export function shardStatement({ name, text }: Statement, shard: number): ShardStatement {
  const held = (value: string) => `onceward_hold_shard(${shard}, ${value})`;
  const guarded = text.includes(TOKEN_FLOOR)
    ? text.replace(TOKEN_FLOOR, held(TOKEN_FLOOR))
    : text.replace(FIRST_COLUMN, `unnest(${held("$1::int[]")}`);
  if (guarded === text) throw new Error(`${name} has no place to hold its shard`);
  return {
    name,
    preparedName: `${name}_${shard}`,
    shard,
    text: guarded.replace(RECORDS, `records_${shard} `),
  };
}

/** Returns whether a statement is for the table of one shard. */
export function isOnShard(statement: Statement): statement is ShardStatement {
  return "shard" in statement;
}
