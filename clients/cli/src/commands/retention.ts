import { setTimeout as sleep } from "node:timers/promises";
import {
  createTenantAdmin,
  type RecordJob,
  RecordJob_Kind,
  RecordJob_State,
  RecordJobSchema,
  type TenantAdmin,
} from "@onceward/client/admin";
import { Argument, type Command } from "commander";
import { parseId, readFieldOptions } from "../arguments.ts";
import { UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { type Column, cellText, enumName } from "../output.ts";
import { collectPages } from "../pages.ts";
import { changePolicy, type PolicyChangeOptions } from "../policy-change.ts";
import { RETENTION_FIELDS } from "../policy-fields.ts";
import { namespacePolicy, tenantPolicy } from "../policy-targets.ts";
import { type Session, sessions } from "../session.ts";
import { renderFacts } from "../table.ts";
import { Moment } from "../times.ts";
import { command, group, type LimitOption, withLimit, withPolicyChange } from "./group.ts";

const WATCH_INTERVAL_MS = 1000;

const JOB_COLUMNS: readonly Column<RecordJob>[] = [
  ["JOB", ({ id }) => `${id}`],
  ["KIND", ({ kind }) => enumName(RecordJob_Kind, kind)],
  ["NAMESPACE", ({ namespace }) => namespace || "(all)"],
  ["STATE", ({ state }) => enumName(RecordJob_State, state)],
  ["EXAMINED", ({ recordsExamined }) => `${recordsExamined}`],
  ["CHANGED", ({ recordsChanged }) => `${recordsChanged}`],
  ["FORGOTTEN", ({ recordsForgotten }) => `${recordsForgotten}`],
  ["STARTS", ({ startsAt }) => new Moment(startsAt)],
  ["FINISHED", ({ finishedAt }) => new Moment(finishedAt)],
];

/** Returns `onceward retention …`: how long keys and results are remembered. */
export function retentionCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("retention", "how long keys and results are remembered", [
    withPolicyChange(
      command(
        "set [namespace]",
        "Sets retention. Shows how many records it would change and forget, and asks.",
        "retention set charges --key 7d --result 24h",
        "retention set charges --key 30d --apply-to-existing --yes",
        "retention set --tenant --failure inherit --dry-run",
      ).option("--tenant", "for all namespaces that don't set their own, instead of one"),
      RETENTION_FIELDS,
    ).action(
      asAdmin(
        async (
          session,
          name: string | undefined,
          options: PolicyChangeOptions & { readonly tenant?: true },
        ) => {
          if ((name === undefined) === (options.tenant === undefined)) {
            throw new UsageError("Give a namespace, or --tenant for all that don't set their own.");
          }
          const target = name === undefined ? tenantPolicy(session) : namespacePolicy(session, name);
          const fields = readFieldOptions(RETENTION_FIELDS, { ...options });
          await changePolicy(session, target, fields, options);
        },
      ),
    ),
    withLimit(
      command(
        "jobs",
        "Shows the progress of background changes of existing records: the newest jobs, or one.",
        "retention jobs",
        "retention jobs 12 --watch",
      )
        .addArgument(new Argument("[job]", "the job's number").argParser(parseId))
        .option("--watch", "show the job's progress until it is done or cancelled"),
    ).action(
      asAdmin(async (session, id: bigint | undefined, options: LimitOption & { readonly watch?: true }) => {
        if (id !== undefined) return showJob(session, id, options.watch === true);
        if (options.watch) throw new UsageError("--watch needs a job.");
        await listJobs(session, options.limit);
      }),
    ),
  ]);
}

async function listJobs({ client, call, output }: Session<TenantAdmin>, limit: number): Promise<void> {
  const listed = await collectPages(limit, async (page) => {
    const { jobs, nextPageToken } = await client.listRecordJobs(page, call);
    return { items: jobs, nextPageToken };
  });
  output.list(RecordJobSchema, listed, JOB_COLUMNS);
}

/** Prints a job. With `watch`, prints progress to standard error until the job is finished, and then the job. */
async function showJob(session: Session<TenantAdmin>, id: bigint, watch: boolean): Promise<void> {
  const { client, call, output } = session;
  let shown = "";
  for (;;) {
    const { job } = await client.getRecordJob({ id }, call);
    if (job === undefined) return;
    if (!watch || job.finishedAt !== undefined) {
      return output.message(RecordJobSchema, job, () =>
        renderFacts(JOB_COLUMNS.map(([heading, cell]) => [heading.toLowerCase(), cellText(cell(job))])),
      );
    }
    const progress = describeProgress(job);
    if (progress !== shown) output.remark(progress);
    shown = progress;
    await sleep(WATCH_INTERVAL_MS);
  }
}

function describeProgress({ state, recordsExamined, recordsChanged, recordsForgotten }: RecordJob): string {
  const counts = `${recordsExamined} examined, ${recordsChanged} changed, ${recordsForgotten} forgotten`;
  return `${enumName(RecordJob_State, state)}: ${counts}\n`;
}
