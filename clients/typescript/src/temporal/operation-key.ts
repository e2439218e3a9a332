import { joinKey } from "../keys/keys.ts";

/** What names an activity task: a part of Temporal's `Info`. */
export interface ActivityInfo {
  readonly activityId: string;
  readonly activityType: string;
  readonly attempt: number;
  readonly isLocal: boolean;
  /** When the activity was first scheduled: the same for every attempt. In milliseconds since 1970. */
  readonly scheduledTimestampMs: number;
  readonly workflowNamespace?: string | undefined;
  /** Temporal's namespace of a standalone activity. */
  readonly activityNamespace: string;
  /** Undefined for a standalone activity. */
  readonly workflowExecution?: { readonly workflowId: string; readonly runId: string } | undefined;
  /** Of a standalone activity. */
  readonly activityRunId?: string | undefined;
}

/** Returns the key of an activity: the same for every attempt and, with the scope `workflow`, for every run of the workflow. */
export function operationKey(info: ActivityInfo, scope: "workflow" | "run"): string {
  const { activityId, workflowExecution, workflowNamespace, activityNamespace, activityRunId } = info;
  // Local activities have a sequence of ids of their own.
  const kind = info.isLocal ? "local" : "activity";
  const namespace = workflowNamespace ?? activityNamespace;
  if (workflowExecution === undefined) {
    const run = scope === "run" && activityRunId !== undefined ? [activityRunId] : [];
    return joinKey(namespace, "standalone", activityId, ...run);
  }
  const { workflowId, runId } = workflowExecution;
  return joinKey(namespace, workflowId, ...(scope === "run" ? [runId] : []), kind, activityId);
}
