import type { Violation } from "../errors/errors.ts";
import { checkFunction, checkText, refusedField, throwIfAny } from "../errors/violations.ts";
import type { Onceward } from "../run/client.ts";
import type { NamespaceDefaults } from "../run/namespace.ts";
import type { ResolveFor } from "../run/resolution.ts";
import { checkNamespaceOptions, isTimestamp } from "../run/run-options.ts";
import { MAX_KEY_BYTES } from "../wire/limits.ts";
import type { CallOrigin } from "./slots.ts";

/** The part of a client that agents use. The in-memory Onceward of `../testing` has it, too. */
export type AgentRunner = Pick<Onceward, "run" | "calls">;

/** Identifies a run of an agent, and configures how its tools run. */
export interface AgentRunOptions extends Omit<NamespaceDefaults, "onInProgress" | "resolve"> {
  /** The group of operations that share a policy, such as "agent-tools". Give it the policy HOLD. */
  readonly namespace: string;
  /**
   * The run's id, 1-255 bytes, which your runtime makes when the run begins, stores with the run's messages, and uses again
   * when the run is resumed: a conversation's or a job's id, never a process's.
   */
  readonly runId: string;
  /**
   * When the run began, as your runtime stored it with the run: the time of the keys of its calls, the same each time the run
   * is resumed. Required in a namespace that requires the times of keys, unless the run's id contains it. There the retention
   * has to be longer than a run: later calls of an older run are refused (`TOO_OLD`).
   * Default: the time in the run's id, if it is a UUID of version 1, 6 or 7, or a ULID.
   */
  readonly runCreatedAt?: Date | undefined;
  /**
   * What to do about a call whose process stopped after the tool began: `hold`, so that it does not run again until its
   * outcome is known, regardless of the namespace's policy; or `policy`, so that the namespace's policy decides. `hold` sets
   * `marksBegin`. Default: `hold`.
   */
  readonly onCrash?: "hold" | "policy" | undefined;
  /**
   * What to do if the service is unreachable, as `RunOptions.onUnavailable` describes it. `proceed` runs a call only if its key is
   * known, as a call's own `key` is, and unless this run knows that the tool may have begun. Default: `throw`.
   */
  readonly onUnavailable?: "throw" | "proceed" | undefined;
  /** Finds out what became of a call whose outcome is unknown, as `RunOptions.resolve` describes it. Default: none. */
  readonly resolve?: ResolveFor<ToolCall> | undefined;
}

/** One call of a tool by a model. */
export interface ToolCall extends CallOrigin {
  /** The tool's name. */
  readonly tool: string;
  /**
   * The number or name of the model response that made the call, within the run: the same when the step is repeated, and
   * different for each other step.
   */
  readonly step: string | number;
  /** The arguments: a JSON value. Their fingerprint is compared when the call is repeated. */
  readonly input: unknown;
  /**
   * The operation's own key, if the arguments have one, such as `refund:` and an order's id. It replaces the run, the step and the
   * tool: a repeat in a later step or in another run is recognised, too. Default: the key of the run, the step and the tool.
   */
  readonly key?: string | undefined;
  /**
   * When the operation was created, the same on each repeat, such as an order's time. Default: without `key` the run's
   * (`runCreatedAt`), and with it the time in the key, if any: a repeat in another run must have the same time.
   */
  readonly keyCreatedAt?: Date | undefined;
  /**
   * The tool's own argument for an idempotency key, as a JSON Pointer such as `/idempotencyKey`: the tool's input has
   * `claim.deriveKey("tool")` there, regardless of the model's value, which is not part of the fingerprint. Default: none.
   */
  readonly keyArgument?: string | undefined;
  /** Ends the call's waits, and aborts `claim.signal`. */
  readonly signal?: AbortSignal | undefined;
}

/** Checks the options of a run. @throws InvalidRequestError. */
export function checkAgentRunOptions(options: AgentRunOptions): void {
  checkNamespaceOptions({ ...options, resolve: undefined });
  const violations: Violation[] = [];
  checkText(violations, "runId", options.runId, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  const { onCrash, runCreatedAt } = options;
  if (runCreatedAt !== undefined && !isTimestamp(runCreatedAt)) {
    violations.push({ field: "runCreatedAt", description: "must be a valid Date of the years 1-9999" });
  }
  if (onCrash !== undefined && onCrash !== "hold" && onCrash !== "policy") {
    violations.push({ field: "onCrash", description: 'must be "hold" or "policy"' });
  }
  throwIfAny(violations);
  if (options.resolve !== undefined) checkFunction("resolve", options.resolve);
}

/** Checks the names of a call. @throws InvalidRequestError. */
export function checkCall({ tool, step, key }: ToolCall): void {
  const violations: Violation[] = [];
  checkText(violations, "tool", tool, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  if (typeof step !== "number") checkText(violations, "step", step, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  if (key !== undefined)
    checkText(violations, `the key of ${tool}`, key, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  throwIfAny(violations);
}

/** Checks that options by tool name tools that there are. @throws InvalidRequestError. */
export function checkToolNames(names: readonly string[], byTool: Readonly<Record<string, object>>): void {
  for (const [option, named] of Object.entries(byTool))
    for (const name of Object.keys(named))
      if (!names.includes(name)) throw refusedField(`${option}.${name}`, "must have the name of a tool");
}
