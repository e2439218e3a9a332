import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type Policy,
  Policy_LateKeys,
  Policy_OnLeaseExpiry,
  type RecordJob,
  type RetentionEffect,
} from "@onceward/client/proto";
import type { Command } from "commander";
import { forgottenWords } from "#words/retention-effect";
import { addFieldOptions, type Field, type FieldsSet } from "./arguments.ts";
import { withYes } from "./commands/group.ts";
import { confirm, type YesOption } from "./confirm.ts";
import { UsageError } from "./failure.ts";
import { describeLateClaims, type LateClaims } from "./late-keys.ts";
import { POLICY_FIELDS, type PolicyInit, policyRows } from "./policy-fields.ts";
import type { Session } from "./session.ts";
import { renderTable } from "./table.ts";
import { formatDuration } from "./times.ts";

/** A tenant or a namespace, which have policies. */
export interface PolicyHolder {
  readonly policy?: Policy | undefined;
  readonly effectivePolicy?: Policy | undefined;
  readonly etag: string;
}

/** The reply to an update, or to its preview. */
export interface PolicyReply {
  readonly holder: PolicyHolder | undefined;
  readonly effect?: RetentionEffect | undefined;
  readonly job?: RecordJob | undefined;
  /** Prints the reply. */
  print(text: () => string): void;
}

/** The settings of an update, beside the fields. */
export interface UpdateSettings {
  readonly validateOnly: boolean;
  readonly applyToExisting: boolean;
  /** Empty: update any current state. */
  readonly etag: string;
}

/** A policy that can be changed. */
export interface PolicyTarget {
  /** Such as "namespace charges". */
  readonly title: string;
  /** What a person types to confirm a loss. */
  readonly name: string;
  read(): Promise<PolicyHolder>;
  update(fields: FieldsSet<PolicyInit>, settings: UpdateSettings): Promise<PolicyReply>;
  /** Counts the claims of the last days that a policy for late keys refused, or would have refused. */
  countLateClaims(): Promise<LateClaims>;
}

/** The options of every command that changes a policy. */
export interface PolicyChangeOptions extends YesOption {
  readonly applyToExisting?: true;
  readonly dryRun?: true;
}

/** Adds the options of a policy change. */
export function withPolicyChange(
  made: Command,
  fields: readonly Field<PolicyInit>[] = POLICY_FIELDS,
): Command {
  return withYes(addFieldOptions(made, fields))
    .option("--apply-to-existing", "change the retention of existing records, too, in the background")
    .option("--dry-run", "show the effect, and change nothing");
}

/**
 * Shows the effect of a change, asks unless it only lengthens retention, and makes the change, unless the policy was changed in the
 * meantime.
 */
export async function changePolicy(
  session: Pick<Session<unknown>, "host" | "output">,
  target: PolicyTarget,
  fields: FieldsSet<PolicyInit>,
  options: PolicyChangeOptions,
): Promise<void> {
  if (fields.paths.length === 0) throw new UsageError("Nothing to set: give one of the policy's options.");
  const applyToExisting = options.applyToExisting === true;
  const before = await target.read();
  const settings = { applyToExisting, etag: before.etag };
  const preview = await target.update(fields, {
    ...settings,
    validateOnly: true,
  });
  const late = fields.paths.includes("late_keys") ? describeLateClaims(await target.countLateClaims()) : "";
  const holds = ["on_lease_expiry", "reclaim_within"].some((field) => fields.paths.includes(field));
  const hold = holds ? describeHold(preview.holder?.effectivePolicy) : "";
  const described = () => describePreview(target.title, before, preview, applyToExisting) + late + hold;
  if (options.dryRun) return preview.print(described);
  const question = `Change the policy of ${target.title}?`;
  const risk = riskOf(before.effectivePolicy, preview);
  const typed = risk === "loss" ? target.name : undefined;
  await confirm(session, risk === "none" ? { yes: true } : options, { effect: described(), question, typed });
  const done = await target.update(fields, {
    ...settings,
    validateOnly: false,
  });
  done.print(() => describeDone(target.title, done));
}

const RETENTIONS = ["keyRetention", "resultRetention", "failureRetention"] as const;

/** Returns whether a change loses something, as the console judges it; none: it only lengthens retention. */
function riskOf(before: Policy | undefined, { holder, effect }: PolicyReply): "none" | "some" | "loss" {
  const after = holder?.effectivePolicy;
  const lengths = RETENTIONS.map((field) => [msOf(before?.[field]), msOf(after?.[field])] as const);
  if (lengths.some(([was, becomes]) => becomes < was) || (effect?.recordsForgotten ?? 0n) > 0n) return "loss";
  const others = (policy: Policy | undefined) =>
    policyRows(policy)
      .filter(([label]) => !label.endsWith("retention"))
      .join();
  return others(before) === others(after) ? "none" : "some";
}

function msOf(duration: Duration | undefined): number {
  return duration === undefined ? 0 : durationMs(duration);
}

function describePreview(
  title: string,
  before: PolicyHolder,
  { holder, effect }: PolicyReply,
  applyToExisting: boolean,
): string {
  const own = new Map(policyRows(holder?.policy));
  const after = new Map(policyRows(holder?.effectivePolicy));
  const rows = policyRows(before.effectivePolicy)
    .map(([label, was]) => ({ label, was, becomes: after.get(label) ?? "-", isSet: own.get(label) !== "-" }))
    .filter(({ was, becomes, isSet }) => isSet || becomes !== was)
    .map(({ label, was, becomes, isSet }) => [
      label,
      was,
      becomes === was ? "" : `→ ${becomes}`,
      isSet ? "" : "not set here",
    ]);
  return `${renderTable([title, "now", "becomes", ""], rows)}\n${describeEffect(effect, applyToExisting)}`;
}

/** Returns what a person who lets leases be held may not expect; empty where late keys are refused. */
function describeHold(policy: Policy | undefined): string {
  const isHeld = policy?.onLeaseExpiry === Policy_OnLeaseExpiry.HOLD || policy?.reclaimWithin !== undefined;
  if (!isHeld || policy?.lateKeys !== Policy_LateKeys.RUN) return "";
  const kept = formatDuration(policy.keyRetention);
  return `An ambiguous record is forgotten after ${kept}: then the next delivery runs the effect, unless --late-keys refuses it.\n`;
}

function describeEffect(effect: RetentionEffect | undefined, applyToExisting: boolean): string {
  const { recordsChanged = 0n, truncated = false } = effect ?? {};
  const atLeast = truncated ? "at least " : "";
  const counts = `${atLeast}${recordsChanged} changed, ${forgottenWords(effect)}`;
  return applyToExisting
    ? `Existing records: ${counts}.\n`
    : `Existing records stay unchanged; with --apply-to-existing: ${counts}.\n`;
}

function describeDone(title: string, { job }: PolicyReply): string {
  const changed = `Changed the policy of ${title}; every replica follows within 10 s.\n`;
  if (job === undefined) return changed;
  return `${changed}Records are being changed in the background: onceward jobs show ${job.id}\n`;
}
