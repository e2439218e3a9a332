import type { Advice } from "@onceward/decode/retention-advice.ts";
import { formatDuration } from "../../format/duration.ts";
import { formatEstimate, formatSize } from "../../format/quantity.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { type Proposal, proposalOf } from "./candidates.ts";
import { formatLate } from "./words.ts";

interface Row {
  readonly name: string;
  readonly today: string;
  readonly proposed: string;
  readonly difference: string;
}

/** What the proposed retention changes: late duplicates, records and bytes. */
export function Comparison({ advice, proposal }: { readonly advice: Advice; readonly proposal: Proposal }) {
  const today = proposalOf(advice, advice.retentionMs);
  if (today === undefined) return undefined;
  const bound =
    proposal.evidenceOfMs === proposal.retentionMs || proposal.evidence === undefined
      ? ""
      : `. Late duplicates of the proposal are at most those of ${formatDuration(proposal.evidenceOfMs)}`;
  return (
    <DataTable
      caption={`What would change${bound}`}
      rows={rowsOf(today, proposal)}
      rowKey={({ name }) => name}
      columns={[
        ["Figure", ({ name }) => name],
        [`Today, ${formatDuration(today.retentionMs)}`, (row) => row.today, "number"],
        [`Proposed, ${formatDuration(proposal.retentionMs)}`, (row) => row.proposed, "number"],
        ["Difference", (row) => row.difference, "number"],
      ]}
    />
  );
}

function rowsOf(today: Proposal, proposed: Proposal): readonly Row[] {
  return [
    {
      name: "Late duplicates a month",
      today: formatLate(today.evidence),
      proposed: formatLate(proposed.evidence),
      difference: lateDifference(today, proposed),
    },
    {
      name: "Days with a late duplicate",
      today: describeDays(today),
      proposed: describeDays(proposed),
      difference: "",
    },
    { name: "Claims with a late duplicate", today: oneIn(today), proposed: oneIn(proposed), difference: "" },
    {
      name: "Records kept",
      today: formatWhole(today.records),
      proposed: formatWhole(proposed.records),
      difference: signed(proposed.records - today.records, formatWhole),
    },
    {
      name: "Storage",
      today: formatSize(today.bytes),
      proposed: formatSize(proposed.bytes),
      difference: signed(proposed.bytes - today.bytes, formatSize),
    },
  ];
}

function formatWhole(records: number): string {
  return formatEstimate(Math.round(records));
}

function lateDifference({ evidence: today }: Proposal, { evidence: proposed }: Proposal): string {
  if (today?.kind !== "late" || proposed?.kind !== "late") return "";
  return signed(proposed.perMonth - today.perMonth, formatEstimate);
}

function describeDays({ evidence }: Proposal): string {
  if (evidence?.kind !== "late") return "not known";
  return `${evidence.daysWithLate} of ${Math.round(evidence.daysObserved)}`;
}

/** A bound that every number is below says nothing. */
function oneIn({ evidence }: Proposal): string {
  const claims = evidence?.kind === "late" ? Math.floor(1e6 / evidence.maxPerMillion) : 0;
  return claims < 2 ? "not known" : `fewer than 1 in ${formatEstimate(claims)}`;
}

/** Rounding can leave a zero with a sign. */
function signed(value: number, format: (value: number) => string): string {
  const text = format(Math.abs(value));
  if (text === format(0)) return "none";
  return value > 0 ? `+${text}` : `−${text}`;
}
