import { isListed } from "../../skips.ts";

/** A test that the suite of another language has skipped. */
export interface SuiteSkip {
  /** As AllowedSkip.file. */
  readonly file: string;
  /** The test's name; that of the file if it was skipped whole. */
  readonly name: string;
}

/** Options with which pytest names each skipped test. */
export const PYTEST_REPORT = ["-rs", "--no-fold-skipped"] as const;

/**
 * Returns the skipped tests of a report of pytest's, made with PYTEST_REPORT in `clients/python`.
 *
 * @throws Error if pytest counted others than it named, or left tests out.
 */
export function skippedByPytest(report: string): readonly SuiteSkip[] {
  const skipped = [...report.matchAll(/^SKIPPED ([^\s:]+)(?:::(\S+))?/gm)].map(([, file = "", name]) => ({
    file: `clients/python/${file}`,
    name: name ?? file,
  }));
  const [summary] = /^\d+ passed.*$/m.exec(report) ?? [];
  const counted = Number(/(\d+) skipped/.exec(summary ?? "")?.[1] ?? 0);
  if (summary === undefined || counted !== skipped.length || /deselected|xfailed/.test(summary))
    throw new Error(`pytest named ${skipped.length} skipped tests: ${summary ?? "no test has passed"}`);
  return skipped;
}

/** Where the import paths of the repository's Go packages begin. */
const GO_ROOT = "github.com/onceward/onceward/";

/** Returns the skipped tests of a report of `go test -json`; a package without tests has none. */
export function skippedByGo(report: string): readonly SuiteSkip[] {
  return report
    .trim()
    .split("\n")
    .map((line): { Action: string; Package: string; Test?: string } => JSON.parse(line))
    .flatMap(({ Action, Package, Test }) =>
      Action === "skip" && Test !== undefined ? [{ file: Package.replace(GO_ROOT, ""), name: Test }] : [],
    );
}

/**
 * Names skipped tests that `test/skips.ts` does not list.
 *
 * @throws Error if there are any in continuous integration, as `RunReport` fails a run.
 */
export function refuseUnlisted(skipped: readonly SuiteSkip[], isCi = process.env.CI === "true"): void {
  const unlisted = skipped
    .filter(({ file, name }) => !isListed(file, name))
    .map(({ file, name }) => `${file} > ${name}`);
  for (const each of unlisted) process.stderr.write(`Skipped: ${each}\n`);
  if (isCi && unlisted.length > 0)
    throw new Error(`test/skips.ts does not list ${unlisted.join(", ")}: install what they need`);
}
