import type { Quotas } from "@onceward/client/proto";
import { renderTable } from "../table.ts";
import type { Measured } from "./measure.ts";

/** A program of one thread cannot use much more: it is the bottleneck then. */
const BUSY_PROCESSORS = 0.85;

/** Returns the figures as a table, with a line for each phase that says what limited it. */
export function describeFigures(figures: readonly Measured[], quotas: Quotas | undefined): string {
  const rows = figures.map((figure) => [
    figure.name,
    figure.perSecond.toFixed(0),
    figure.p50Ms.toFixed(2),
    figure.p99Ms.toFixed(2),
    countsOf(figure.refused),
    countsOf(figure.errors),
    figure.processors.toFixed(2),
  ]);
  const table = renderTable(
    ["PHASE", "PER SECOND", "P50 MS", "P99 MS", "REFUSED", "ERRORS", "CLIENT PROCESSORS"],
    rows,
  );
  const limits = figures.map((figure) => `${figure.name}: limited by ${limitOf(figure, quotas)}\n`);
  return `${table}\n${limits.join("")}`;
}

/** Returns what kept a phase from more operations a second: the first of quotas, errors, this program and latency that applies. */
export function limitOf(figure: Measured, quotas: Quotas | undefined): string {
  const { refused, errors, processors, callers, done, p50Ms } = figure;
  if (total(refused) > 0 && quotas?.dryRun !== true) {
    const rate = quotas?.operationsPerSecond;
    const quota =
      refused.QUOTA_RATE !== undefined && rate !== undefined ? ` of ${rate} operations a second` : "";
    return `the tenant's quota${quota}: ${countsOf(refused)} refused. These figures are the quota's, not the installation's`;
  }
  if (total(errors) > done / 100) return `errors: ${countsOf(errors)}`;
  if (processors >= BUSY_PROCESSORS)
    return `this program's processor (${processors.toFixed(2)} of one): run it on several machines at once for more`;
  return `latency: ${callers} at once, each of which waits ${p50Ms.toFixed(1)} ms for an answer. More --callers show whether the service has more`;
}

function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function countsOf(counts: Readonly<Record<string, number>>): string {
  return (
    Object.entries(counts)
      .map(([reason, count]) => `${count} ${reason}`)
      .join(", ") || "0"
  );
}
