import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The slowest files of each suite of `.ci/run`, which end last if they begin last. The others follow in Vitest's order. */
export const SLOW_FILES: readonly string[] = [
  "test/deploy/balancer-waits.test.ts",
  "test/deploy/rehearsal.test.ts",
  "test/deploy/runbook-walk.test.ts",
  "test/deploy/rehearsal-states.test.ts",
  "test/model/mutants.test.ts",
  "test/packaging/package.test.ts",
  "test/embedded/embedded-postgres.test.ts",
  "test/console/screens.test.ts",
  "test/model/replay/replay.test.ts",
  "test/transports/any-field.test.ts",
  "test/commands/dev.test.ts",
  "test/store/stale-statistics.test.ts",
  "test/adapters/inbox/crash.test.ts",
  "test/commands/move-tenant.test.ts",
  "test/commands/pepper.test.ts",
  "test/admin/isolation.test.ts",
  "test/examples/examples.test.ts",
  "test/commands/readme.test.ts",
];

/** Starts the slow files of each project first. Vitest knows how long files take only where it has run before, not in a new clone. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification) =>
      SLOW_FILES.includes(relative(this.ctx.config.root, moduleId));
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) => {
      const own = sorted.filter((file) => file.project === project);
      return [...own.filter(isSlow), ...own.filter((file) => !isSlow(file))];
    });
  }
}
