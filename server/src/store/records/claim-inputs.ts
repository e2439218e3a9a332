import type { ClaimCommand } from "../../domain/claim.ts";
import { booleanArray, byteaArray, intArray, textArray } from "../sql-arrays.ts";

/** Something of a claim: a parameter of the statement for one, and a column of those for many. */
interface Input {
  readonly type: string;
  readonly parameterOf: (command: ClaimCommand) => unknown;
  readonly columnOf: (commands: readonly ClaimCommand[]) => Buffer;
}

/** @returns what makes inputs of a type from what they are of a command. */
function inputOf<Value>(type: string, arrayOf: (values: readonly (Value | undefined)[]) => Buffer) {
  return (parameterOf: (command: ClaimCommand) => Value | undefined): Input => ({
    type,
    parameterOf,
    columnOf: (commands) => arrayOf(commands.map(parameterOf)),
  });
}

const bool = inputOf("boolean", booleanArray);
const bytea = inputOf("bytea", byteaArray);
const int = inputOf("int", intArray);
const text = inputOf("text", textArray);

/** What a claim is decided by. */
const INPUTS = {
  tenant_id: int(({ id }) => id.tenantId),
  namespace: text(({ id }) => id.namespace),
  key: text(({ id }) => id.key),
  fingerprint: bytea(({ fingerprint }) => fingerprint),
  claim_id: text(({ claimId }) => claimId),
  owner: text(({ owner }) => owner),
  accepts_ambiguous: bool(({ acceptAmbiguous }) => acceptAmbiguous),
  holds_on_lease_expiry: bool(({ onLeaseExpiry }) => onLeaseExpiry === "HOLD"),
  lease_ms: int(({ leaseMs }) => leaseMs),
  key_retention_s: int(({ keyRetentionS }) => keyRetentionS),
  result_retention_s: int(({ resultRetentionS }) => resultRetentionS),
  failure_retention_s: int(({ failureRetentionS }) => failureRetentionS),
};

export type ClaimInput = keyof typeof INPUTS;

const IN_ORDER = Object.entries(INPUTS).map(([name, input], index) => ({
  ...input,
  name,
  parameter: `$${index + 1}::${input.type}`,
}));

/** A parameter each, of the statement for one claim. */
export const PARAMETERS = Object.fromEntries(
  IN_ORDER.map(({ name, parameter }) => [name, parameter]),
) as Readonly<Record<ClaimInput, string>>;

/** @returns the values of PARAMETERS. */
export function parametersOf(command: ClaimCommand): readonly unknown[] {
  return IN_ORDER.map(({ parameterOf }) => parameterOf(command));
}

/**
 * A column each, in the select list of the statements for many. Arrays that are unnested side by side there take one pass; a
 * function in `from` for all of them keeps each array's rows in a store of its own first.
 */
export const COLUMNS = IN_ORDER.map(({ name, parameter }) => `unnest(${parameter}[]) as ${name}`).join(", ");

/** @returns the arrays for COLUMNS. */
export function columnsOf(commands: readonly ClaimCommand[]): readonly Buffer[] {
  return IN_ORDER.map(({ columnOf }) => columnOf(commands));
}
