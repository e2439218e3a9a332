import { relative } from "node:path";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { isListed } from "../skips.ts";

const SLOW_MS = 10_000;

/**
 * Reports what the list of results does not say: the slowest files, a failed run's seed, and skipped tests. In continuous integration
 * (`CI=true`) a skipped test that `test/skips.ts` does not list fails the run: a missing program must not look like
 * success.
 */
export class RunReport implements Reporter {
  readonly #isCi: boolean;
  #root = "";

  constructor(isCi: boolean) {
    this.#isCi = isCi;
  }

  onInit(vitest: Vitest): void {
    this.#root = vitest.config.root;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const slowest = modules
      .map((module) => ({ module, ms: module.diagnostic().duration }))
      .filter(({ ms }) => ms > SLOW_MS)
      .sort((a, b) => b.ms - a.ms)
      .map(({ module, ms }) => `${relative(this.#root, module.moduleId)} ${Math.round(ms / 1000)} s`);
    if (slowest.length > 0) print(`Files that took more than ${SLOW_MS / 1000} s: ${slowest.join(", ")}.`);
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    if (modules.some((module) => !module.ok())) {
      print(`Random values of this run repeat with ONCEWARD_TEST_SEED=${process.env.ONCEWARD_TEST_SEED}.`);
    }
    const skipped = tests.filter((test) => test.result().state === "skipped");
    const unlisted = skipped.filter((test) => !isListed(this.#pathOf(test), test.fullName));
    if (!this.#isCi || unlisted.length === 0) return;
    for (const test of unlisted) print(`Skipped: ${this.#pathOf(test)} > ${test.fullName}`);
    print(`${unlisted.length} tests were skipped that test/skips.ts does not list: install what they need.`);
    process.exitCode = 1;
  }

  #pathOf(test: TestCase): string {
    return relative(this.#root, test.module.moduleId);
  }
}

function print(line: string): void {
  process.stderr.write(`${line}\n`);
}
