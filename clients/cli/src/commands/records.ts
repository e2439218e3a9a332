import {
  GetKeyHistoryResponseSchema,
  GetRecordResponseSchema,
  Record_State,
  RecordSchema,
  ResolveRecordResponseSchema,
} from "@onceward/client/proto";
import type { Command } from "commander";
import { MAX_RECONCILED } from "#words/answers";
import { typedName } from "#words/changes";
import { resolveAnswers, writeKeys } from "../answers.ts";
import { parseCount, parseId } from "../arguments.ts";
import { createTenantAdmin } from "../clients.ts";
import { confirm } from "../confirm.ts";
import { showExported } from "../exported-history.ts";
import { UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { Output } from "../output.ts";
import { collectPages } from "../pages.ts";
import { type RecordFilterOptions, recordFilter, withRecordFilter } from "../record-filter.ts";
import { describeAttempts, describeHistory, describeRecord, stateName } from "../record-text.ts";
import { readResolution, resolutionMessage, withResolution } from "../resolution.ts";
import { type ResolveMatchingOptions, resolveMatching } from "../resolve-matching.ts";
import { sessions } from "../session.ts";
import { Deadline, Moment, parsePast } from "../times.ts";
import { countCommand } from "./count.ts";
import { command, group, type LimitOption, withLimit, withTable, withYes } from "./group.ts";

/** The option of commands that show a record. */
export interface ResultOption {
  readonly result?: true;
}

interface ListOptions extends RecordFilterOptions, LimitOption {
  readonly csv?: string;
}

interface ResolveOptions extends ResolveMatchingOptions {
  readonly fencingToken?: bigint;
  readonly allMatching?: true;
  readonly answers?: string;
}

/** Returns `onceward records …`: the records of keys, and their resolution. */
export function recordCommands(host: Host): Command {
  return group("records", [
    listCommand(host),
    countCommand(host),
    showCommand(host),
    historyCommand(host),
    resolveCommand(host),
  ]);
}

function listCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withRecordFilter(
    withLimit(
      command(
        "list",
        "Lists records by namespace and key, or ambiguous ones by their age. The ambiguous records are the queue of operations whose effect a person must check.",
        "records list --state ambiguous --oldest-first",
        "records list --namespace charges --prefix order-10 --claimed-before 24h",
        "records list --state ambiguous --lease-expired-before 1h --owner worker-3",
        "records list --namespace payouts --state ambiguous --csv payouts.csv --limit 1000",
      ),
    ).option(
      "--csv <file>",
      "with --state ambiguous: also write the keys to a new file for records resolve --answers",
    ),
  ).action(
    asAdmin(async ({ client, call, output }, options: ListOptions) => {
      const { csv } = options;
      if (csv !== undefined && options.state !== Record_State.AMBIGUOUS) {
        throw new UsageError("--csv needs --state ambiguous.");
      }
      const filter = recordFilter(options);
      const links = new Map<string, string>();
      const limit = csv === undefined ? options.limit : Math.min(options.limit, MAX_RECONCILED);
      const listed = await collectPages(limit, "records", async (page) => {
        const reply = await client.listRecords({ ...filter, ...page }, call);
        for (const [namespace, link] of Object.entries(reply.providerLinks)) links.set(namespace, link);
        return reply;
      });
      if (csv !== undefined) await writeKeys(csv, listed.items, links);
      output.list(RecordSchema, listed, [
        ["NAMESPACE", (record) => record.namespace],
        ["STATE", (record) => stateName(record)],
        ["ATTEMPT", (record) => `${record.attempt}`, "wide"],
        ["OWNER", (record) => record.owner || "-", "text"],
        ["CLAIMED", (record) => new Moment(record.claimedAt)],
        ["EXPIRES", (record) => new Deadline(record.expiresAt), "wide"],
        ["KEY", (record) => record.key, "key"],
      ]);
    }),
  );
}

function showCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withTable(
    command(
      "show <namespace> <key>",
      "Shows a key's record and its last attempts, and its result if it is asked for.",
      "records show charges order-1",
      "records show charges order-1 --result",
      "records show charges order-1 --json",
    ),
  )
    .option("--result", "show the contents of the result and the checkpoint")
    .action(
      asAdmin(async ({ client, call, output }, namespace: string, key: string, { result }: ResultOption) => {
        const reply = await client.getRecord({ namespace, key }, call);
        const { record, attempts, auditTarget } = reply;
        if (record === undefined) return;
        output.message(GetRecordResponseSchema, reply, () => {
          const facts = describeRecord(record, { auditTarget, showsResult: result === true });
          return `${facts}\n${describeAttempts(attempts, record, output.layout)}`;
        });
      }),
    );
}

function historyCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  const fromService = asAdmin(async ({ client, call, output }, namespace: string, key: string) => {
    const history = await client.getKeyHistory({ namespace, key }, call);
    output.message(GetKeyHistoryResponseSchema, history, () => describeHistory(history, output.layout));
  });
  return withTable(
    command(
      "history <namespace> <key>",
      "Shows how many duplicates a key had, how many calls were refused and why, and some of these calls. Counts are lower bounds; calls of the last seconds are missing.",
      "records history charges order-1",
      "records history charges order-1 --json",
      "records history charges order-1 --from exported/acme-7",
    ),
  )
    .option(
      "--from <path>",
      "read an export's file, or a directory of them, also after the record's retention; asks no service",
    )
    .action(async (namespace: string, key: string, { from }: { from?: string }, made: Command) => {
      if (from === undefined) return await fromService(namespace, key, made);
      const output = new Output(host, made.optsWithGlobals().json === true, made.opts());
      await showExported(from, namespace, key, output);
    });
}

function resolveCommand(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return withResolution(
    withYes(
      command(
        "resolve [namespace] [key]",
        "Resolves a record, with --all-matching all ambiguous records that match, or with --answers those that a file names, for a reason that the audit keeps. Takes effect on every replica within 10 s.",
        "records resolve charges order-1 --release --reason 'no charge at the provider, ticket 411'",
        `records resolve charges order-1 --complete '{"id":"ch_1"}' --reason 'charged, says the provider'`,
        "records resolve charges order-1 --complete @charge.json --reason 'charged, says the provider'",
        `records resolve charges POST:/charges:acme:order-1 --complete '{"id":"ch_1"}' --http-status 201 --reason 'charged'`,
        "records resolve charges order-1 --forget --reason 'a test order' --yes",
        "records resolve payouts --all-matching --owner worker-3 --release --reason 'worker-3 had no network' --dry-run",
        "records resolve payouts --all-matching --owner worker-3 --release --reason 'worker-3 had no network' --expect 12",
        "records resolve payouts --answers payouts.csv --complete '' --reason 'looked up at the bank' --dry-run",
      ),
    )
      .option(
        "--all-matching",
        "all ambiguous records of the namespace, or of all, that match the options below",
      )
      .option(
        "--answers <file>",
        'the ambiguous records of a CSV file with the columns key, "happened?" (yes or no) and, if it has one, namespace, as records list --csv writes it; - is standard input. yes: complete; no: release (with --forget: forget); empty: skip. At most 10,000 keys',
      )
      .option("--owner <name>", "with --all-matching: only records whose newest claim named this owner")
      .option(
        "--lease-expired-before <time>",
        "with --all-matching: only leases that expired before",
        parsePast,
      )
      .option("--checkpoint <name>", "with --all-matching: only records whose last checkpoint has this name")
      .option("--dry-run", "with --all-matching or --answers: count the records, and change nothing")
      .option(
        "--expect <count>",
        "with --all-matching or --answers: refuse unless this many records match",
        parseCount,
      ),
  )
    .requiredOption("--reason <text>", "the reason, for the audit")
    .option("--fencing-token <token>", "only if this is still the newest claim's token", parseId)
    .action(
      asAdmin(
        async (session, namespace: string | undefined, key: string | undefined, options: ResolveOptions) => {
          const { client, call, output } = session;
          const { reason, fencingToken = 0n } = options;
          checkResolveOptions(key, options);
          if (options.allMatching) return resolveMatching(session, namespace, options);
          if (options.answers !== undefined) {
            return resolveAnswers(session, host, namespace, options.answers, options);
          }
          if (namespace === undefined || key === undefined) {
            throw new UsageError("Give a namespace and a key, or --all-matching, or --answers.");
          }
          const resolution = await readResolution(options);
          const request = { namespace, key, resolution: resolutionMessage(resolution), reason, fencingToken };
          const question = `${RESOLVED[resolution.case].ask} ${namespace} ${key}?`;
          const typed = resolution.case === "forget" ? typedName({ namespace, key }) : undefined;
          await confirm(session, options, { question, typed });
          const reply = await client.resolveRecord(request, call);
          output.message(
            ResolveRecordResponseSchema,
            reply,
            () =>
              `${RESOLVED[resolution.case].done} ${namespace} ${key}; every replica follows within 10 s.\n`,
          );
        },
      ),
    );
}

const RESOLVED = {
  forget: { ask: "Forget", done: "Forgot" },
  release: { ask: "Release", done: "Released" },
  complete: { ask: "Complete", done: "Completed" },
};

/** @throws UsageError if options of one record, of a filter and of a file are mixed. */
function checkResolveOptions(key: string | undefined, options: ResolveOptions): void {
  const { allMatching, answers, fencingToken, owner, leaseExpiredBefore, checkpoint, dryRun, expect } =
    options;
  if (allMatching && answers !== undefined) throw new UsageError("Give --all-matching or --answers.");
  const many = allMatching ? "--all-matching" : answers === undefined ? undefined : "--answers";
  if (many !== undefined && (key !== undefined || fencingToken !== undefined)) {
    throw new UsageError(`${many} takes no key and no --fencing-token.`);
  }
  if (!allMatching && [owner, leaseExpiredBefore, checkpoint].some((option) => option !== undefined)) {
    throw new UsageError("--owner, --lease-expired-before and --checkpoint need --all-matching.");
  }
  if (many === undefined && (dryRun !== undefined || expect !== undefined)) {
    throw new UsageError("--dry-run and --expect need --all-matching or --answers.");
  }
}
