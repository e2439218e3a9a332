import type { Advice } from "@onceward/words/retention-advice";
import { formatLate } from "@onceward/words/verdict-words";
import { formatDurationMs } from "../../format/duration.ts";
import { formatEstimate, formatSize } from "../../format/quantity.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { type Proposal, proposalOf } from "./candidates.ts";

type Row = readonly [name: string, today: string, proposed: string, difference: string];

/** What the proposed retention changes: late duplicates, records and bytes. */
export function Comparison({ advice, proposal }: { readonly advice: Advice; readonly proposal: Proposal }) {
  const today = proposalOf(advice, advice.retentionMs);
  if (today === undefined) return undefined;
  const bound =
    proposal.evidenceOfMs === proposal.retentionMs || proposal.evidence === undefined
      ? ""
      : `. Late duplicates of the proposal are at most those of ${formatDurationMs(proposal.evidenceOfMs)}`;
  return (
    <DataTable
      caption={`What would change${bound}`}
      rows={rowsOf(today, proposal)}
      rowKey={([name]) => name}
      columns={[
        ["Figure", ([name]) => name],
        [`Today, ${formatDurationMs(today.retentionMs)}`, ([, now]) => now, "number"],
        [`Proposed, ${formatDurationMs(proposal.retentionMs)}`, ([, , proposed]) => proposed, "number"],
        ["Difference", ([, , , difference]) => difference, "number"],
      ]}
    />
  );
}

function rowsOf(today: Proposal, proposed: Proposal): readonly Row[] {
  const row = (name: string, of: (each: Proposal) => string, difference = ""): Row => {
    return [name, of(today), of(proposed), difference];
  };
  const moreRecords = signed(proposed.records - today.records, formatWhole);
  const moreBytes = signed(proposed.bytes - today.bytes, formatSize);
  return [
    row("Late duplicates a month", ({ evidence }) => formatLate(evidence), lateDifference(today, proposed)),
    row("Days with a late duplicate", describeDays),
    row("Claims with a late duplicate", oneIn),
    row("Records kept, estimated", ({ records }) => formatWhole(records), moreRecords),
    row("Size of their rows, estimated", ({ bytes }) => formatSize(bytes), moreBytes),
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
