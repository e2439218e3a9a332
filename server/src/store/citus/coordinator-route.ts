import type { Runner } from "../pool.ts";
import { isUnreachableNode } from "../statement-errors.ts";
import { passedOn } from "./passed-statement.ts";
import { reachesNode } from "./shard-map.ts";
import { MAX_IN_FLIGHT_BY_NODE, type ShardRoute } from "./shard-route.ts";
import { createBindToShard } from "./shard-statements.ts";

/** Returns the route by the coordinator, which passes each statement on to the node of its shard. */
export function createCoordinatorRoute(coordinator: Runner): ShardRoute {
  const bindToShard = createBindToShard(coordinator);
  return {
    turns: { width: MAX_IN_FLIGHT_BY_NODE },
    runnerOn: (_, shard) => async (statement, parameters, operations) => {
      const passed = passedOn(await bindToShard(statement, shard, parameters));
      return await coordinator.run(passed.statement, passed.parameters, operations);
    },
    isAway: (_, error) => isUnreachableNode(error),
    answers: (node) => reachesNode(coordinator, node),
    keepOnly() {},
    async close() {},
  };
}
