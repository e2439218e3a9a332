import { Context } from "@temporalio/activity";

type ContextParameters = ConstructorParameters<typeof Context>;

/** A task of an activity, as a worker gives it to interceptors; and what it sends to Temporal. */
export interface Task {
  readonly context: Context;
  readonly heartbeats: unknown[];
  cancel(reason: Error): void;
}

/** Returns a task, with Temporal's own Context. */
export function newTask(info: Partial<Context["info"]> = {}): Task {
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
