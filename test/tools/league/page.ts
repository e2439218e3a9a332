import { CHECKS, type Report } from "../../../clients/cli/src/probe/probe.ts";
import type { Verdict } from "../../../clients/cli/src/probe/verdict.ts";
import { ABSENT, type Subject } from "./subjects.ts";

/** What became of a subject: a report, or why there is none. */
export interface Result {
  readonly subject: Subject;
  readonly report?: Report;
  readonly reason?: string;
}

const SIGNS: Readonly<Record<Verdict["kind"], string>> = {
  passed: "✓",
  failed: "✗",
  skipped: "–",
  nothing: "–",
  unfinished: "?",
};

/** Returns the page with the table of results. */
export function comparisonPage(results: readonly Result[], at: Date): string {
  const examined = results.filter(({ report }) => report !== undefined);
  const missing = results.filter(({ report }) => report === undefined);
  const numbers = examined.map((_, index) => index + 1);
  return `# Libraries for idempotency keys, as the probe sees them

<!-- npm run league -- --write writes this page -->

[\`onceward probe\`](cli/probe.md) has sent the same requests to a small service behind each of these libraries, on ${at.toISOString().slice(0, 10)}. Every
service does the same: it waits 20 ms, counts an effect, and answers 201 with a JSON body, a \`Location\` and a cookie (none where a library says
that it stores no response with one). Each library is used as its README shows, with the store in the table, in one process. \`npm run league\` repeats it; the services are in
[\`test/tools/league/apps/\`](../test/tools/league/apps/), the versions and what each library claims in
[\`subjects.ts\`](../test/tools/league/subjects.ts).

The table shows what these versions do in this service, and no more: a library may do better with other options, or differently in another
framework, and a check may matter little to you. We wrote the probe, and our own guard was written with these questions in mind. Corrections are welcome.

| | library | framework | store | ✓ | ✗ | – |
|---|---|---|---|---|---|---|
${examined.map(({ subject, report }, index) => `| ${index + 1} | ${subject.name} | ${subject.framework} | ${subject.store} | ${countsOf(report).join(" | ")} |`).join("\n")}

## Results by check

✓ the promise holds, ✗ it does not, – the library does not claim it, or the check does not apply or proves nothing. [Every check's promise](cli/probe.md#checks).

| check | ${numbers.join(" | ")} |
|---|${numbers.map(() => "---|").join("")}
${CHECKS.map(({ id }) => `| \`${id}\` | ${examined.map(({ report }) => signOf(report, id)).join(" | ")} |`).join("\n")}

## What failed

${examined.map(({ subject, report }) => failuresOf(subject, report)).join("\n\n")}

## Not examined

| library | reason |
|---|---|
${[...missing.map(({ subject, reason }) => [subject.name, reason ?? ""] as const), ...ABSENT].map(([name, reason]) => `| ${name} | ${reason.replaceAll("|", "\\|")} |`).join("\n")}
`;
}

function countsOf(report: Report | undefined): readonly number[] {
  return ["✓", "✗", "–"].map(
    (sign) => report?.findings.filter(({ verdict }) => SIGNS[verdict.kind] === sign).length ?? 0,
  );
}

function signOf(report: Report | undefined, id: string): string {
  const found = report?.findings.find(({ check }) => check.id === id);
  return found === undefined ? "" : SIGNS[found.verdict.kind];
}

function failuresOf({ name }: Subject, report: Report | undefined): string {
  const failed = report?.findings.flatMap(({ check, verdict }) =>
    verdict.kind === "failed" ? [`- \`${check.id}\`: ${tamed(verdict.detail)}`] : [],
  );
  return `### ${name}\n\n${failed?.length ? failed.join("\n") : "Nothing."}`;
}

/** Returns a detail as one line of code, without what differs from run to run. */
function tamed(detail: string): string {
  return `\`${detail.replaceAll("`", "'").replaceAll(/\s+/g, " ").trim()}\``;
}
