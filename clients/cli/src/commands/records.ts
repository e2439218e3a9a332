import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Record_State, RecordSchema } from "@onceward/client";
import { createTenantAdmin, ResolveRecordResponseSchema } from "@onceward/client/admin";
import { type Command, Option } from "commander";
import { parseId } from "../arguments.ts";
import { confirm, type Host, type YesOption } from "../host.ts";
import { collectPages } from "../pages.ts";
import { describeRecord, stateName } from "../record-text.ts";
import { type ResolutionOptions, readResolution, resolutionMessage } from "../resolution.ts";
import { sessions } from "../session.ts";
import { formatMoment, parsePast } from "../times.ts";
import { command, group, type LimitOption, withLimit, withYes } from "./group.ts";

interface ListOptions extends LimitOption {
  readonly namespace?: string;
  readonly state?: "in-progress" | "completed" | "released" | "ambiguous";
  readonly prefix?: string;
  readonly claimedAfter?: Timestamp;
  readonly claimedBefore?: Timestamp;
}

interface ResolveOptions extends ResolutionOptions, YesOption {
  readonly reason: string;
  readonly fencingToken?: bigint;
}

const STATES = {
  "in-progress": Record_State.IN_PROGRESS,
  completed: Record_State.COMPLETED,
  released: Record_State.RELEASED,
  ambiguous: Record_State.AMBIGUOUS,
};

/** Returns `onceward records …`: the records of keys, and their resolution. */
export function recordCommands(host: Host): Command {
  return group("records", "the records of keys, and their resolution", [
    listCommand(host),
    showCommand(host),
    resolveCommand(host),
  ]);
}

function listCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withLimit(
    command(
      "list",
      "Lists records by namespace and key. The ambiguous records are the queue of operations whose effect a person must check.",
      "records list --state ambiguous",
      "records list --namespace charges --prefix order-10 --claimed-before 24h",
    ),
  )
    .option("--namespace <name>", "only records in this namespace")
    .addOption(new Option("--state <state>", "only records in this state").choices(Object.keys(STATES)))
    .option("--prefix <text>", "only keys with this prefix")
    .option("--claimed-after <time>", "only records whose newest claim is after this time", parsePast)
    .option("--claimed-before <time>", "only records whose newest claim is before this time", parsePast)
    .action(
      asAdmin(async ({ client, call, output }, options: ListOptions) => {
        const { limit, namespace = "", prefix = "", state, claimedAfter, claimedBefore } = options;
        const filter = {
          namespace,
          keyPrefix: prefix,
          ...(state && { state: STATES[state] }),
          ...(claimedAfter && { claimedAfter }),
          ...(claimedBefore && { claimedBefore }),
        };
        const listed = await collectPages(limit, async (page) => {
          const { records, nextPageToken } = await client.listRecords({ ...filter, ...page }, call);
          return { items: records, nextPageToken };
        });
        output.list(RecordSchema, listed, [
          ["NAMESPACE", (record) => record.namespace],
          ["KEY", (record) => record.key],
          ["STATE", (record) => stateName(record.state)],
          ["ATTEMPT", (record) => `${record.attempt}`],
          ["OWNER", (record) => record.owner || "-"],
          ["CLAIMED", (record) => formatMoment(record.claimedAt)],
          ["EXPIRES", (record) => formatMoment(record.expiresAt)],
        ]);
      }),
    );
}

function showCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return command(
    "show <namespace> <key>",
    "Shows a key's record, with its result.",
    "records show charges order-1",
    "records show charges order-1 --json",
  ).action(
    asAdmin(async ({ client, call, output }, namespace: string, key: string, _options: object) => {
      const { record } = await client.getRecord({ namespace, key }, call);
      if (record !== undefined) output.message(RecordSchema, record, () => describeRecord(record));
    }),
  );
}

function resolveCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withYes(
    command(
      "resolve <namespace> <key>",
      "Resolves a record, for a reason that the audit keeps. Takes effect on every replica within 10 s.",
      "records resolve charges order-1 --release --reason 'no charge at the provider, ticket 411'",
      `records resolve charges order-1 --complete '{"id":"ch_1"}' --reason 'charged, says the provider'`,
      "records resolve charges order-1 --complete @charge.json --reason 'charged, says the provider'",
      "records resolve charges order-1 --forget --reason 'a test order' --yes",
    ),
  )
    .option("--release", "the effect did not happen: the next claim gets the key")
    .option("--complete <json>", "the effect happened, and this is its result; @FILE reads it from a file")
    .option(
      "--failure <json>",
      'the operation failed permanently, with this error, such as {"message":"card declined"}',
    )
    .option("--forget", "remove the record, as if the key had never been claimed")
    .requiredOption("--reason <text>", "the reason, for the audit")
    .option("--fencing-token <token>", "only if this is still the newest claim's token", parseId)
    .action(
      asAdmin(async ({ client, call, output }, namespace: string, key: string, options: ResolveOptions) => {
        const { reason, fencingToken = 0n } = options;
        const resolution = await readResolution(options);
        const request = { namespace, key, resolution: resolutionMessage(resolution), reason, fencingToken };
        await confirm(host, options, `${RESOLVED[resolution.case].ask} ${namespace} ${key}?`);
        const reply = await client.resolveRecord(request, call);
        output.message(
          ResolveRecordResponseSchema,
          reply,
          () => `${RESOLVED[resolution.case].done} ${namespace} ${key}; every replica follows within 10 s.\n`,
        );
      }),
    );
}

const RESOLVED = {
  forget: { ask: "Forget", done: "Forgot" },
  release: { ask: "Release", done: "Released" },
  complete: { ask: "Complete", done: "Completed" },
};
