import { renderTable } from "../table.ts";
import type { Finding, Report } from "./probe.ts";

/** Returns reports as text: a table for each endpoint, and how to repeat each failure. */
export function reportText(reports: readonly Report[]): string {
  return reports.map(textOf).join("\n");
}

/** Returns reports as JSON values; README.md documents the members. */
export function reportJson(reports: readonly Report[]): unknown {
  return {
    endpoints: reports.map(({ url, key, effects, requests, findings }) => ({
      ...{ url, key, effects, requests },
      checks: findings.map((finding) => ({
        check: finding.check.id,
        fact: finding.check.fact,
        result: resultOf(finding),
        detail: detailOf(finding),
        commands: finding.commands,
      })),
    })),
  };
}

function textOf({ url, key, effects, requests, findings }: Report): string {
  const rows = findings.map((finding) => [finding.check.id, resultOf(finding), detailOf(finding)]);
  const counts = (["passed", "failed", "nothing", "skipped", "unfinished"] as const)
    .map((kind) => {
      const count = findings.filter(({ verdict }) => verdict.kind === kind).length;
      return kind === "nothing" ? `${count} prove nothing (–)` : `${count} ${kind}`;
    })
    .join(", ");
  const failures = findings.filter(
    ({ verdict, commands }) => verdict.kind === "failed" && commands.length > 0,
  );
  return [
    `${url}: ${counts}; ${requests} requests. Effects: ${effects}.${key ? ` Key: ${key}.` : ""}\n\n`,
    renderTable(["CHECK", "RESULT", "DETAIL"], rows, undefined, [undefined, undefined, "text"]),
    ...failures.map(
      ({ check, commands }) =>
        `\n${check.id}: ${check.fact} To repeat it, with a key of its own:\n${commands.map((line) => `  ${line}\n`).join("")}`,
    ),
  ].join("");
}

/** Returns how a check ended, in one word; a dash for a pass that proves nothing. */
function resultOf({ verdict }: Finding): string {
  return verdict.kind === "nothing" ? "–" : verdict.kind;
}

function detailOf({ verdict }: Finding): string {
  return verdict.kind === "passed" ? "" : verdict.detail;
}
