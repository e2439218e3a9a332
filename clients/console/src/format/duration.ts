import { parseDurationMs } from "@onceward/words/durations";
import { UNITS } from "@onceward/words/words";

export { formatDuration } from "@onceward/words/words";

/** Returns a duration exactly, in the largest unit that divides it, such as "3 d" or "90 s". */
export function formatExactly(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms >= size && ms % size === 0) ?? ["s", 1_000];
  return `${ms / size} ${unit}`;
}

/** Returns the milliseconds of a text such as "72h", "3 d" or "90 min"; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  return parseDurationMs(text.trim().toLowerCase().replace(/\s+/, "").replace(/min$/, "m"));
}
