import type { RefusedNow } from "@onceward/client/admin";
import { callerWords, causeOf, limitWords } from "#words/refusals";
import { renderTable } from "./table.ts";

/** Returns who was refused in the last minute, why and by which limit, and what to do about each cause; "" if nothing was. */
export function describeRefused(refused: readonly RefusedNow[]): string {
  if (refused.length === 0) return "";
  const rows = refused.map((each) => [
    ...[callerWords(each), each.namespace || "-", `${each.operations}`, causeOf(each).phrase],
    limitWords(each) || "-",
  ]);
  const remedies = new Map(refused.map((each) => [causeOf(each).phrase, causeOf(each).remedy]));
  const table = renderTable(["API KEY", "NAMESPACE", "REFUSED", "WHY", "LIMIT"], rows);
  const advice = Array.from(remedies, ([phrase, remedy]) => `${phrase}: ${remedy}\n`);
  return `\n${table}\n${advice.join("")}`;
}
