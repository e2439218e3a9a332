/**
 * `@onceward/client/temporal`: activities of Temporal. An attempt that repeats a finished activity gets its stored result: the
 * worker died before it reported the result, the report was lost or, with the scope `workflow`, the workflow was reset.
 *
 * ```ts
 * import { currentClaim } from "@onceward/client";
 * import { temporalInterceptor } from "@onceward/client/temporal";
 *
 * const worker = await Worker.create({
 *   taskQueue: "payments",
 *   workflowsPath,
 *   activities: {
 *     charge: (order: Order) => provider.charge(order, { idempotencyKey: currentClaim().deriveKey("provider") }),
 *   },
 *   interceptors: { activity: [temporalInterceptor(onceward, { namespace: "activities" })] },
 * });
 * ```
 *
 * @module
 */

import type { Context } from "@temporalio/activity";
import { checkFunction, refusedField } from "./errors/violations.ts";
import { keyTime } from "./keys/key-time.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import type { NamespaceDefaults } from "./run/namespace.ts";
import { checkNamespaceOptions } from "./run/run-options.ts";
import { orTerminal, settle } from "./temporal/failures.ts";
import { startHeartbeats } from "./temporal/heartbeats.ts";
import { type ActivityInfo, operationKey } from "./temporal/operation-key.ts";

export type { ActivityInfo } from "./temporal/operation-key.ts";

/** Which activities are guarded, and how their operations are named. */
export interface TemporalOptions extends Omit<NamespaceDefaults, "onInProgress"> {
  /** The group of operations that share a policy, such as "activities". */
  readonly namespace: string;
  /** The types of the guarded activities. Default: all. */
  readonly activities?: readonly string[] | undefined;
  /**
   * What the ids of activities belong to. `run`: each run of a workflow has activities of its own. `workflow`: activities of a
   * run that was reset or retried are those of the first run, and do not happen again. Not for workflows that continue as
   * new, run by a schedule, or use their id again: the ids of their activities begin again, so that an activity with equal
   * arguments would get the old result and not run. Default: `run`.
   */
  readonly scope?: "workflow" | "run" | undefined;
  /** Returns the operation's own key. Default: one of the ids of the workflow and the activity. */
  readonly key?: ((info: ActivityInfo, args: readonly unknown[]) => string) | undefined;
  /**
   * Returns what the key belongs to, as `RunOptions.fingerprint` describes it. Default: the activity's type and its
   * arguments.
   */
  readonly fingerprint?: ((info: ActivityInfo, args: readonly unknown[]) => unknown) | undefined;
}

/** The interceptor of one activity task, as a Worker expects it. */
export interface ActivityInterceptor {
  readonly inbound: {
    execute<Input extends { readonly args: unknown[] }>(
      input: Input,
      next: (input: Input) => Promise<unknown>,
    ): Promise<unknown>;
  };
}

/**
 * Returns an interceptor for the `interceptors.activity` of a Worker.
 *
 * - An activity returns a JSON value; every attempt gets the stored form.
 * - An error releases the claim, or leaves it to the policy as in `run`, and Temporal's retry policy decides. A non-retryable ApplicationFailure, and a
 *   TerminalError, are stored; each attempt fails with a non-retryable ApplicationFailure.
 * - A value that could not be stored is the activity's result all the same: Temporal keeps it.
 * - Other arguments than those of the first attempt fail the activity (non-retryable, `OncewardFingerprintMismatch`).
 * - A key that contains no time has that at which the activity was first scheduled: the same for every attempt. A reset schedules
 *   the activity again, so that with the scope `workflow` it has a later one. A key that is too old fails the activity
 *   (non-retryable, `OncewardTooOld`).
 * - While another worker runs the activity, waits at most `waitMs`, with Temporal's heartbeats; then, as for an ambiguous
 *   record or a service that is unreachable, the attempt fails with a retryable ApplicationFailure (`OncewardInProgress`,
 *   `OncewardAmbiguous`, `OncewardUnavailable`), and Temporal tries again.
 * - A cancelled activity ends its waits at once. While it runs, it decides itself, and `claim.signal` aborts.
 *
 * An activity that completes asynchronously (CompleteAsyncError) is not guarded after its function has ended.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function temporalInterceptor(
  onceward: Runner,
  options: TemporalOptions,
): (context: Context) => ActivityInterceptor {
  const { activities, scope = "run", key, fingerprint, ...shared } = options;
  checkNamespaceOptions(shared);
  for (const [name, fn] of Object.entries({ key, fingerprint })) {
    if (fn !== undefined) checkFunction(name, fn);
  }
  if (scope !== "workflow" && scope !== "run") throw refusedField("scope", 'must be "workflow" or "run"');
  const guarded = activities && new Set(activities);

  async function execute(context: Context, args: readonly unknown[], next: () => Promise<unknown>) {
    const { info, cancellationSignal: signal } = context;
    const heartbeats = startHeartbeats(context);
    let held: Claim | undefined;
    try {
      const operation = key?.(info, args) ?? operationKey(info, scope);
      return await onceward.run(
        {
          ...shared,
          key: operation,
          keyCreatedAt: keyTime(operation) ? undefined : new Date(info.scheduledTimestampMs),
          fingerprint: fingerprint === undefined ? [info.activityType, args] : fingerprint(info, args),
          signal,
        },
        async (claim) => {
          held = claim;
          heartbeats.end();
          return await orTerminal(next);
        },
      );
    } catch (error) {
      return settle(error, held);
    } finally {
      heartbeats.end();
    }
  }

  return (context) => ({
    inbound: {
      execute(input, next) {
        if (guarded?.has(context.info.activityType) === false) return next(input);
        return execute(context, input.args, () => next(input));
      },
    },
  });
}
