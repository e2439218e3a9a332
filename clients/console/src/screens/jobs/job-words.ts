import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { type RecordJob, RecordJob_Kind, RecordJob_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { changedRecordsOf } from "@onceward/words/changed-records";
import { withParameters } from "../../parts/pages.ts";
import type { Mark } from "../../parts/state-mark.tsx";

/** Returns a job's state, for StateMark. */
export function stateOf({ state }: Pick<RecordJob, "state">): Mark {
  return MARKS[state] ?? MARKS[RecordJob_State.UNSPECIFIED];
}

const MARKS: Readonly<Record<RecordJob_State, Mark>> = {
  [RecordJob_State.UNSPECIFIED]: { tone: "quiet", word: "unknown" },
  [RecordJob_State.WAITING]: { tone: "quiet", word: "waiting" },
  [RecordJob_State.RUNNING]: { tone: "busy", word: "running" },
  [RecordJob_State.DONE]: { tone: "good", word: "done" },
  [RecordJob_State.CANCELLED]: { tone: "bad", word: "cancelled" },
};

/** Returns the id of a job; undefined: the text is not an id. An id of the contract is an int64; a longer text names no job. */
export function parseJobId(text: string): bigint | undefined {
  return /^[1-9][0-9]{0,17}$/.test(text) ? BigInt(text) : undefined;
}

/**
 * Returns the part of a job that is done, from 0 to 1; undefined if it is unknown: only jobs that resolve know how many
 * records they have before them.
 */
export function shareOf({ state, kind, recordsExamined, recordsMatching }: RecordJob): number | undefined {
  if (state === RecordJob_State.DONE) return 1;
  if (kind !== RecordJob_Kind.RESOLVE || recordsMatching === 0n) return undefined;
  return Math.min(1, Number(recordsExamined) / Number(recordsMatching));
}

/** Where the records that a job changed are listed, and what that list does not show. */
interface ChangedRecordsList {
  /** Undefined: there is none to list. */
  readonly list: { readonly label: string; readonly path: string } | undefined;
  /** "": nothing. */
  readonly note: string;
}

/** Returns where the records that a job changed are listed. */
export function changedRecords(job: RecordJob): ChangedRecordsList {
  const { id, namespace, startsAt } = job;
  switch (changedRecordsOf(job)) {
    case "none":
      return { list: undefined, note: "None." };
    case "forgotten":
      return { list: undefined, note: "They are forgotten: no record is left to list." };
    case "by-job": {
      const path = pathOf("/records", { namespace, job: `${id}` });
      return { list: { label: "Records that it resolved", path }, note: "" };
    }
    case "claimed-before": {
      const path = pathOf("/records", { namespace, before: secondAfter(startsAt) });
      const note =
        "It changed those that followed the old retention. A record does not keep which job changed it.";
      return { list: { label: "Records that were claimed before it began", path }, note };
    }
  }
}

/** Returns the address of the audit events of a job's change, from its start to its end. */
export function auditPathOf({ kind, namespace, createdAt, finishedAt }: RecordJob): string {
  const after = createdAt === undefined ? "" : timestampDate(createdAt).toISOString();
  const action = actionOf(kind, namespace);
  return pathOf("/audit", { action, after, before: secondAfter(finishedAt) });
}

/** Returns the name of the call that creates a job, as the audit keeps it. */
function actionOf(kind: RecordJob_Kind, namespace: string): string {
  switch (kind) {
    case RecordJob_Kind.RESOLVE:
      return "ResolveAmbiguousRecords";
    case RecordJob_Kind.FORGET:
      return "DeleteNamespace";
    default:
      return namespace === "" ? "UpdateTenant" : "UpdateNamespace";
  }
}

function pathOf(path: string, filters: Readonly<Record<string, string>>): string {
  return `${path}?${withParameters("", filters)}`;
}

/** Returns the next whole second; "" without a time. */
function secondAfter(time: Timestamp | undefined): string {
  return time === undefined ? "" : new Date((Number(time.seconds) + 1) * 1_000).toISOString();
}
