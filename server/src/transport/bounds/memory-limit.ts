import { totalmem } from "node:os";

const MIB = 1024 * 1024;
/** What a process takes beside the budgets: Node, the code, cached completions and credentials. */
const BASE_BYTES = 256 * MIB;
/** With so much beyond the base, the budgets have their full size. */
const FULL_BYTES = 768 * MIB;
/** Smaller budgets would not hold a few of the largest messages. */
const MIN_SHARE = 1 / 8;

/**
 * Returns the share of the memory budgets' full size that fits a memory limit: all of it from 1 GiB, a third with 512 MiB,
 * and at least an eighth.
 */
export function budgetShareOf(limitBytes: number): number {
  return Math.min(1, Math.max(MIN_SHARE, (limitBytes - BASE_BYTES) / FULL_BYTES));
}

/**
 * Returns the memory limit of the process: its container's (cgroup), or the machine's memory.
 *
 * @see https://nodejs.org/api/process.html#processconstrainedmemory
 */
function memoryLimitBytes(): number {
  const constrainedBytes = process.constrainedMemory();
  return constrainedBytes > 0 ? Math.min(constrainedBytes, totalmem()) : totalmem();
}

/** The share of the memory budgets that this process has. */
export const BUDGET_SHARE = budgetShareOf(memoryLimitBytes());
