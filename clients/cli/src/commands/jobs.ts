import { setTimeout as sleep } from "node:timers/promises";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { TenantAdmin } from "@onceward/client/admin";
import { type RecordJob, RecordJob_Kind, RecordJob_State, RecordJobSchema } from "@onceward/client/proto";
import { Argument, type Command } from "commander";
import { changedRecordsOf } from "#words/changed-records";
import { CANCEL_JOB } from "#words/changes";
import { isUnfinished, progressOf, titleOf } from "#words/job-words";
import { parseId } from "../arguments.ts";
import { createTenantAdmin } from "../clients.ts";
import { confirm, type YesOption } from "../confirm.ts";
import type { Host } from "../host.ts";
import { type Column, cellText, enumName } from "../output.ts";
import { collectPages } from "../pages.ts";
import { type Session, sessions } from "../session.ts";
import { renderFacts } from "../table.ts";
import { Deadline, Moment } from "../times.ts";
import { command, group, type LimitOption, withLimit, withYes } from "./group.ts";

const WATCH_INTERVAL_MS = 1000;

const JOB_COLUMNS: readonly Column<RecordJob>[] = [
  ["JOB", ({ id }) => `${id}`],
  ["KIND", ({ kind }) => enumName(RecordJob_Kind, kind)],
  ["NAMESPACE", ({ namespace }) => namespace || "(all)"],
  ["STATE", ({ state }) => enumName(RecordJob_State, state)],
  ["EXAMINED", ({ recordsExamined }) => `${recordsExamined}`],
  ["CHANGED", ({ recordsChanged }) => `${recordsChanged}`],
  ["FORGOTTEN", ({ recordsForgotten }) => `${recordsForgotten}`],
  ["STARTS", ({ startsAt }) => new Deadline(startsAt), "wide"],
  ["FINISHED", ({ finishedAt }) => new Moment(finishedAt), "wide"],
];

/** Returns `onceward jobs …`: background changes of records. */
export function jobCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("jobs", [
    withLimit(
      command(
        "list",
        "Lists background changes of records, the newest first.",
        "jobs list",
        "jobs list --json",
      ),
    ).action(asAdmin((session, { limit }: LimitOption) => listJobs(session, limit))),
    command("show", "Shows the progress of a background job.", "jobs show 12", "jobs show 12 --watch")
      .addArgument(jobArgument("<job>"))
      .option("--watch", "show the job's progress until it is done or cancelled")
      .action(asAdmin((session, id: bigint, { watch }: WatchOption) => showJob(session, id, watch === true))),
    withYes(
      command(
        "cancel",
        "Cancels a background change of records, on whichever replica works on it. What it changed stays changed.",
        "jobs cancel 12",
        "jobs cancel 12 --yes",
      ).addArgument(jobArgument("<job>")),
    ).action(
      asAdmin(async (session, id: bigint, options: YesOption) => {
        const { client, call, output } = session;
        const { job: now } = await client.getRecordJob({ id }, call);
        const effect = `${now === undefined ? "" : describeProgress(now)}${CANCEL_JOB}`;
        await confirm(session, options, { effect, question: `Cancel job ${id}?` });
        const { job } = await client.cancelRecordJob({ id }, call);
        if (job === undefined) return;
        const end = job.state === RecordJob_State.CANCELLED ? "is cancelled" : "was already done";
        output.message(
          RecordJobSchema,
          job,
          () => `Job ${id} ${end}; it changed ${job.recordsChanged} records.\n`,
        );
      }),
    ),
  ]);
}

interface WatchOption {
  readonly watch?: true;
}

function jobArgument(name: string): Argument {
  return new Argument(name, "the job's number").argParser(parseId);
}

async function listJobs({ client, call, output }: Session<TenantAdmin>, limit: number): Promise<void> {
  const listed = await collectPages(limit, "jobs", (page) => client.listRecordJobs(page, call));
  output.list(RecordJobSchema, listed, JOB_COLUMNS);
}

/** Prints a job. With `watch`, prints progress to standard error until the job is finished, and then the job. */
async function showJob(session: Session<TenantAdmin>, id: bigint, watch: boolean): Promise<void> {
  const { client, call, output } = session;
  let shown = "";
  for (;;) {
    const { job } = await client.getRecordJob({ id }, call);
    if (job === undefined) return;
    if (!watch || !isUnfinished(job)) {
      return output.message(RecordJobSchema, job, () =>
        renderFacts([
          ...JOB_COLUMNS.map(([heading, cell]) => [heading.toLowerCase(), cellText(cell(job))] as const),
          ["changed records", describeChangedRecords(job)],
        ]),
      );
    }
    const progress = describeProgress(job);
    if (progress !== shown) output.remark(progress);
    shown = progress;
    await sleep(WATCH_INTERVAL_MS);
  }
}

function describeChangedRecords(job: RecordJob): string {
  const { id, namespace, startsAt } = job;
  const list = `onceward records list${namespace && ` --namespace ${namespace}`}`;
  switch (changedRecordsOf(job)) {
    case "none":
      return "none";
    case "forgotten":
      return "forgotten: none is stored";
    case "by-job":
      return `${list} --job ${id}`;
    case "claimed-before":
      return `among ${list}${startsAt === undefined ? "" : ` --claimed-before ${timestampDate(startsAt).toISOString()}`}`;
  }
}

function describeProgress(job: RecordJob): string {
  return `${titleOf(job)}: ${enumName(RecordJob_State, job.state)}, ${progressOf(job)}\n`;
}
