import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  IdempotencyService,
  IdentityService,
  OperatorService,
  TenantAdminService,
} from "@onceward/client/proto";
import { InvalidArgumentError } from "commander";
import { ACTIONS, actionOf } from "#words/audit-actions";
import { didYouMean } from "./similar.ts";

const RPCS = [TenantAdminService, OperatorService, IdempotencyService, IdentityService].flatMap(
  ({ methods }) => methods,
);

/**
 * Returns the action of audit events that a text names, in any case.
 *
 * @throws InvalidArgumentError for another text, with the actions that contain it, else the most similar one, else all changes.
 */
export function parseAction(text: string): string {
  const typed = text.toLowerCase();
  const action = actionOf(text);
  if (action) return action;
  const containing = ACTIONS.filter((name) => typed !== "" && name.toLowerCase().includes(typed));
  const hint = containing.length > 0 ? ` Did you mean ${containing.join(", ")}?` : didYouMean(text, ACTIONS);
  throw new InvalidArgumentError(
    `There is no such action.${hint || ` Changes are ${changes().join(", ")}.`}`,
  );
}

function changes(): readonly string[] {
  const reads = RPCS.filter(
    ({ idempotency }) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
  );
  const unaudited = new Set([...reads, ...IdempotencyService.methods].map(({ name }) => name));
  return ACTIONS.filter((name) => !unaudited.has(name));
}
