import { createOnceward, currentClaim, newKey, OutcomeUnknownError, TerminalError } from "@onceward/client";
import { type TemporalOptions, temporalInterceptor } from "@onceward/client/temporal";
import { Context } from "@temporalio/activity";
import { ApplicationFailure } from "@temporalio/common";
import { expect, test, vi } from "vitest";
import { type Guarded, newTimedGuard, useGuards } from "../consumers/fixtures.ts";

type ContextParameters = ConstructorParameters<typeof Context>;

/** A task of an activity, as a worker gives it to interceptors; and what it sends to Temporal. */
interface Task {
  readonly context: Context;
  readonly heartbeats: unknown[];
  cancel(reason: Error): void;
}

function newTask(info: Partial<Context["info"]> = {}): Task {
  const heartbeats: unknown[] = [];
  const controller = new AbortController();
  const whole = {
    activityId: "1",
    activityType: "charge",
    activityNamespace: "default",
    workflowNamespace: "default",
    workflowExecution: { workflowId: "order-7", runId: "first" },
    attempt: 1,
    isLocal: false,
    scheduledTimestampMs: Date.now(),
    ...info,
  } as Context["info"];
  const log = {} as ContextParameters[5];
  const rest = [undefined, log, {}, {}] as unknown as [undefined, typeof log, never, never];
  const never = new Promise<never>(() => {});
  const context = new Context(
    whole,
    never,
    controller.signal,
    (details) => heartbeats.push(details),
    ...rest,
  );
  return { context, heartbeats, cancel: (reason) => controller.abort(reason) };
}

const newGuard = useGuards();

function attempt(
  { onceward }: Pick<Guarded, "onceward">,
  activity: (...args: unknown[]) => unknown,
  options: Partial<TemporalOptions> = {},
  { context }: Task = newTask(),
  args: unknown[] = [{ cents: 500 }],
): Promise<unknown> {
  const intercept = temporalInterceptor(onceward, { namespace: "charges", ...options });
  const { inbound } = intercept(context);
  return inbound.execute({ args, headers: {} }, async (input) => await activity(...input.args));
}

test("another attempt gets the stored result", async () => {
  await using guard = await newGuard();
  const activity = vi.fn(() => ({ charge: currentClaim().key }));
  const first = await attempt(guard, activity);
  expect(first).toEqual({ charge: "default:order-7:first:activity:1" });
  expect(await attempt(guard, activity, {}, newTask({ attempt: 2 }))).toEqual(first);
  expect(activity).toHaveBeenCalledOnce();
  expect(() => currentClaim()).toThrow(/^currentClaim must be called within/);
});

test("activities, workflows, runs and namespaces have own keys; with scope workflow, runs share", async () => {
  await using guard = await newGuard();
  const activity = vi.fn();
  const tasks = [
    {},
    { activityId: "2" },
    { isLocal: true },
    { workflowNamespace: "other" },
    { workflowExecution: { workflowId: "order-8", runId: "a" } },
    { workflowExecution: undefined, activityRunId: "a" },
  ];
  for (const info of tasks) await attempt(guard, activity, {}, newTask(info as object));
  const runs = ["second", "third"].map((runId) => ({ workflowExecution: { workflowId: "order-7", runId } }));
  for (const run of runs) await attempt(guard, activity, {}, newTask(run));
  expect(activity).toHaveBeenCalledTimes(tasks.length + 2);
  for (const run of runs) await attempt(guard, activity, { scope: "workflow" }, newTask(run));
  expect(activity).toHaveBeenCalledTimes(tasks.length + 3);
  const key = (_: unknown, [order]: readonly unknown[]) => (order as { id: string }).id;
  for (const info of tasks) await attempt(guard, activity, { key }, newTask(info as object), [{ id: "a" }]);
  expect(activity).toHaveBeenCalledTimes(tasks.length + 4);
  // Not in the list: not guarded.
  for (let times = 0; times < 2; times++) await attempt(guard, activity, { activities: ["refund"] });
  expect(activity).toHaveBeenCalledTimes(tasks.length + 6);
});

test("an activity has the time at which it was first scheduled, and one that is too old ends", async () => {
  const guard = newTimedGuard();
  expect(await attempt(guard, () => "charged")).toBe("charged");
  const activity = vi.fn();
  const late = newTask({ activityId: "2", attempt: 2, scheduledTimestampMs: Date.now() - 120_000 });
  await expect(attempt(guard, activity, {}, late)).rejects.toMatchObject({
    type: "OncewardTooOld",
    nonRetryable: true,
    message: expect.stringContaining("Find out whether"),
  });
  // A key with a time of its own.
  expect(await attempt(guard, () => "charged", { key: newKey }, late)).toBe("charged");
  expect(activity).not.toHaveBeenCalled();
});

test("other arguments end the activity", async () => {
  await using guard = await newGuard();
  await attempt(guard, () => "charged");
  const activity = vi.fn();
  await expect(attempt(guard, activity, {}, newTask(), [{ cents: 900 }])).rejects.toMatchObject({
    name: "ApplicationFailure",
    type: "OncewardFingerprintMismatch",
    nonRetryable: true,
  });
  expect(activity).not.toHaveBeenCalled();
});

test("a failure that Temporal retries runs again; one that ends the activity is stored", async () => {
  await using guard = await newGuard();
  const flaky = vi
    .fn(() => "charged")
    .mockImplementationOnce(() => {
      throw ApplicationFailure.create({ message: "the bank is closed" });
    });
  await expect(attempt(guard, flaky)).rejects.toThrow("the bank is closed");
  expect(await attempt(guard, flaky)).toBe("charged");

  const declined = vi.fn(() => {
    throw ApplicationFailure.create({ message: "declined", type: "Card", nonRetryable: true, details: [51] });
  });
  const failure = { name: "ApplicationFailure", message: "declined", type: "Card", nonRetryable: true };
  for (let times = 0; times < 2; times++) {
    const again = attempt(guard, declined, {}, newTask({ activityId: "2" }));
    await expect(again).rejects.toMatchObject({ ...failure, details: [51] });
  }
  expect(declined).toHaveBeenCalledOnce();
  const terminal = attempt(
    guard,
    () => Promise.reject(new TerminalError("no")),
    {},
    newTask({ activityId: "3" }),
  );
  await expect(terminal).rejects.toMatchObject({ message: "no", nonRetryable: true });
});

test("an activity that may have had its effect is tried again, also after a failure that ends it", async () => {
  await using guard = await newGuard();
  for (const error of [new TerminalError("gave up"), ApplicationFailure.nonRetryable("gave up")]) {
    const activity = () => {
      currentClaim().outcomeUnknown(new Error("no answer"));
      throw error;
    };
    const task = newTask({ activityId: error.name });
    await expect(attempt(guard, activity, {}, task)).rejects.toThrow(OutcomeUnknownError);
  }
});

test("while another worker runs it, an activity waits with heartbeats, until it is cancelled", async () => {
  await using guard = await newGuard();
  const release = await guard.holdElsewhere("default:order-7:first:activity:1");
  const fingerprint = () => undefined;
  const task = newTask({ heartbeatTimeoutMs: 30, heartbeatDetails: { page: 3 } });
  const cancelled = attempt(guard, vi.fn(), { fingerprint }, task);
  await expect.poll(() => task.heartbeats).toContainEqual({ page: 3 });
  task.cancel(new Error("the workflow was cancelled"));
  await expect(cancelled).rejects.toThrow("the workflow was cancelled");
  await expect(attempt(guard, vi.fn(), { fingerprint, waitMs: 0 })).rejects.toMatchObject({
    type: "OncewardInProgress",
    nonRetryable: false,
  });
  await release();
});

test("an activity whose worker died runs again, and gives its downstream the same key", async () => {
  await using guard = await newGuard();
  const { address, tenant } = guard;
  const keys: string[] = [];
  const crash = async () => {
    const dying = createOnceward({ address, apiKey: tenant.apiKey });
    const begun = Promise.withResolvers<void>();
    const activity = () => {
      keys.push(currentClaim().deriveKey("bank"));
      begun.resolve();
      return new Promise(() => {});
    };
    void Promise.allSettled([attempt({ onceward: dying }, activity)]);
    await begun.promise;
    await dying.close({ timeoutMs: 0 });
    await guard.endLeases();
  };
  await crash();
  await crash();
  expect(new Set(keys).size).toBe(1);
});

test("with policy HOLD, an activity whose worker died does not run until its record is resolved", async () => {
  await using guard = await newGuard();
  await guard.holdExpired();
  const record = { namespace: "charges", key: "default:order-7:first:activity:1" };
  await guard.onceward.api.claim({ ...record, owner: "dying" });
  await guard.endLeases();
  const ambiguous = { type: "OncewardAmbiguous", nonRetryable: false };
  await expect(attempt(guard, vi.fn())).rejects.toMatchObject(ambiguous);
});

test("a value that can't be stored is the result, and its repetition ends the activity", async () => {
  await using guard = await newGuard();
  expect(await attempt(guard, () => "x".repeat(70_000))).toHaveLength(70_000);
  await expect(attempt(guard, vi.fn())).rejects.toMatchObject({
    type: "OncewardResultUnavailable",
    nonRetryable: true,
  });
});
