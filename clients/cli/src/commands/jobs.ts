import { createTenantAdmin, RecordJob_State, RecordJobSchema } from "@onceward/client/admin";
import { Argument, type Command } from "commander";
import { parseId } from "../arguments.ts";
import { confirm, type Host, type YesOption } from "../host.ts";
import { sessions } from "../session.ts";
import { command, group, withYes } from "./group.ts";

/** Returns `onceward jobs …`: background changes of records. */
export function jobCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("jobs", "background changes of records", [
    withYes(
      command(
        "cancel",
        "Cancels a background change of records, on whichever replica works on it. What it changed stays changed.",
        "jobs cancel 12",
        "jobs cancel 12 --yes",
      ).addArgument(new Argument("<job>", "the job's number").argParser(parseId)),
    ).action(
      asAdmin(async ({ client, call, output }, id: bigint, options: YesOption) => {
        await confirm(host, options, `Cancel job ${id}?`);
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
