import type { Check } from "../check.ts";
import { readTableCounts, type TableCounts } from "../facts/tables.ts";
import type { Observation } from "../findings.ts";

/** Fewer updates say little. */
const MIN_UPDATES = 10_000;
/** Nine completions in ten are heap-only on a table as the migrations make it. */
const MIN_HEAP_ONLY_SHARE = 0.7;
/** Autovacuum starts at a fifth of the rows; fewer dead rows than this cost nothing. */
const MAX_DEAD_SHARE = 0.5;
const MIN_DEAD_ROWS = 20_000;

/** Looks at the share of heap-only updates of records, and at dead rows of all tables. */
export const tablesCheck: Check = {
  name: "tables",
  needsPostgres: true,
  examine: async ({ runner }) => (await readTableCounts(runner)).flatMap(judgeTable),
};

/** Returns what is wrong with a table. */
export function judgeTable(counts: TableCounts): readonly Observation[] {
  return [...judgeHeapOnlyShare(counts), ...judgeDeadRows(counts)];
}

function judgeHeapOnlyShare({ table, updates, heapOnlyUpdates }: TableCounts): readonly Observation[] {
  const share = heapOnlyUpdates / updates;
  if (table !== "records" || updates < MIN_UPDATES || share >= MIN_HEAP_ONLY_SHARE) return [];
  return [
    {
      id: "hot_share_low",
      summary: `${percent(share)} of ${updates} updates of records were heap-only; 90 % are usual.`,
    },
  ];
}

function judgeDeadRows({ table, liveRows, deadRows }: TableCounts): readonly Observation[] {
  if (deadRows < MIN_DEAD_ROWS || deadRows <= MAX_DEAD_SHARE * liveRows) return [];
  return [
    {
      id: "dead_rows_many",
      summary: `Table ${table} has ${deadRows} dead rows beside ${liveRows} live ones.`,
    },
  ];
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
