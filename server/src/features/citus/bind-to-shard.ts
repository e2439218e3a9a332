import type { Runner, Statement } from "../../core/store/pool.ts";
import { takeOverRecords } from "../../core/store/records/claim-statements.ts";
import { type ShardStatement, shardStatement } from "./shard-statement.ts";
import { createTokenStock } from "./token-stock.ts";

/** A statement on the table of one shard, with its parameters. */
export interface BoundShardStatement {
  readonly statement: ShardStatement;
  readonly parameters: readonly unknown[];
}

/** Returns a statement on records as one on the table of a shard, with a fencing token if it needs one. */
export type BindToShard = (
  statement: Statement,
  shard: number,
  parameters: readonly unknown[],
) => Promise<BoundShardStatement>;

/** @param coordinator draws fencing tokens. */
export function createBindToShard(coordinator: Runner): BindToShard {
  const tokens = createTokenStock(coordinator);
  /** By the name of the statement on the shard's table. */
  const statements = new Map<string, ShardStatement>();

  function onShard(statement: Statement, shard: number, ownParameters: number): ShardStatement {
    const name = `${statement.name}_${shard}`;
    let found = statements.get(name);
    if (found === undefined) {
      found = shardStatement(statement, shard, ownParameters);
      statements.set(name, found);
    }
    return found;
  }

  return async (statement, shard, parameters) => {
    const bound = onShard(statement, shard, parameters.length);
    if (!bound.takesToken) return { statement: bound, parameters };
    const changesRows = statement.name === takeOverRecords.name;
    const token = await (changesRows ? tokens.forExistingRows() : tokens.forNewRows());
    return { statement: bound, parameters: [...parameters, token] };
  };
}
