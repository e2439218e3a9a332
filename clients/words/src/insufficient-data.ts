import type { InsufficientData } from "@onceward/client/proto";

/** Returns the data that a statement about retention or keys still needs, such as "needs 3 more days and 1 more claim". */
export function describeInsufficientData({
  missingDays,
  missingClaims,
}: Pick<InsufficientData, "missingDays" | "missingClaims">): string {
  const parts = [...more(missingDays, "day"), ...more(missingClaims, "claim")];
  return parts.length === 0 ? "needs more data" : `needs ${parts.join(" and ")}`;
}

function more(count: number | bigint, noun: string): readonly string[] {
  if (count <= 0) return [];
  return [`${count.toLocaleString("en")} more ${Number(count) === 1 ? noun : `${noun}s`}`];
}
