import { UNITS } from "@onceward/words/words";

export { parseDuration } from "@onceward/words/field-facts";
export { formatDuration } from "@onceward/words/words";

/** Returns a duration exactly, in the largest unit that divides it, such as "3 d" or "90 s". */
export function formatExactly(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms >= size && ms % size === 0) ?? ["s", 1_000];
  return `${ms / size} ${unit}`;
}
