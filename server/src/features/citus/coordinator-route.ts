import type { Runner } from "../../core/store/pool.ts";
import { isTimedOut, isUnreachableNode } from "../../core/store/statement-errors.ts";
import { createBindToShard } from "./bind-to-shard.ts";
import { type PassedStatement, passedStatement } from "./passed-statement.ts";
import { reachesNode } from "./shard-map.ts";
import { MAX_IN_FLIGHT_BY_NODE, type ShardRoute } from "./shard-route.ts";
import type { ShardStatement } from "./shard-statement.ts";

/** Returns the route by the coordinator, which passes each statement on to the node of its shard. */
export function createCoordinatorRoute(coordinator: Runner): ShardRoute {
  const bindToShard = createBindToShard(coordinator);
  const passed = new WeakMap<ShardStatement, PassedStatement>();

  function passing(statement: ShardStatement, parameters: number): PassedStatement {
    let found = passed.get(statement);
    if (found === undefined) {
      found = passedStatement(statement, parameters);
      passed.set(statement, found);
    }
    return found;
  }

  return {
    turns: { width: MAX_IN_FLIGHT_BY_NODE },
    runnerOn: (_, shard) => async (statement, parameters, operations) => {
      const bound = await bindToShard(statement, shard, parameters);
      const outer = passing(bound.statement, bound.parameters.length);
      return await coordinator.run(outer, [...bound.parameters, outer.passedText], operations);
    },
    // The coordinator answers, so a statement that took too long waited for the node. Locks end sooner.
    isAway: (_, error) => isUnreachableNode(error) || isTimedOut(error),
    answers: (node) => reachesNode(coordinator, node).catch(() => false),
    keepOnly() {},
    async close() {},
  };
}
