import type { Statement } from "../../core/store/pool.ts";

/** A statement on the table of one shard, for the node that holds it. */
export interface ShardStatement extends Statement {
  readonly shard: number;
  /** Whether the number that the statement draws from the sequence is its last parameter. */
  readonly takesToken: boolean;
}

const DRAWN_TOKEN = "nextval('fencing_tokens')";
/** The first parameter of statements on many records, where they read it first. */
const FIRST_COLUMN = "unnest($1::int[]";
const RECORDS = /\brecords (?=(?:as )?(?:r|was)\b)/g;

/**
 * Returns a statement on records as a statement on the table of one shard. It holds the shard before it reads or
 * writes a row. The sequence is on the coordinator alone, so the number drawn from it is a parameter, the one after
 * the statement's own.
 */
export function shardStatement(
  { name, text }: Statement,
  shard: number,
  ownParameters: number,
): ShardStatement {
  const held = (value: string) => `onceward_hold_shard(${shard}, ${value})`;
  const takesToken = text.includes(DRAWN_TOKEN);
  const guarded = takesToken
    ? text.replace(DRAWN_TOKEN, held(`$${ownParameters + 1}::bigint`))
    : text.replace(FIRST_COLUMN, `unnest(${held("$1::int[]")}`);
  if (guarded === text) throw new Error(`${name} has no place to hold its shard`);
  return {
    name,
    preparedName: `${name}_${shard}`,
    shard,
    text: guarded.replace(RECORDS, `records_${shard} `),
    takesToken,
  };
}

/** Returns whether a statement is for the table of one shard. */
export function isOnShard(statement: Statement): statement is ShardStatement {
  return "shard" in statement;
}
