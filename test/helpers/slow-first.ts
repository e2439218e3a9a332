import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The files that take more than 10 s of `npm test`, the longest first, with their seconds beside other work on two cores:
 * the order matters, not the number. Each run prints its own.
 */
export const SLOW_FILES: Readonly<Record<string, number>> = {
  "test/commands/dev.test.ts": 41,
  "test/commands/move-tenant.test.ts": 35,
  "test/admin/isolation.test.ts": 32,
  "test/commands/readme.test.ts": 31,
  "test/commands/pepper.test.ts": 30,
  "test/transports/any-field.test.ts": 27,
  "test/store/stale-statistics.test.ts": 26,
  "test/transports/costly-requests.test.ts": 25,
  "test/cache/redis-topologies.test.ts": 22,
  "test/admin/operator-tenants.test.ts": 19,
  "test/commands/upgrade.test.ts": 18,
  "test/cache/redis-faults.test.ts": 18,
  "test/adapters/http/departures.test.ts": 17,
  "test/commands/recovery.test.ts": 17,
  "test/commands/serve.test.ts": 16,
  "test/examples/examples.test.ts": 16,
  "test/transports/any-request.test.ts": 16,
  "test/admin/background-failures.test.ts": 16,
  "test/doctor/redis-findings.test.ts": 16,
  "test/adapters/consumers/rabbitmq.test.ts": 16,
  "test/transports/drain.test.ts": 16,
  "test/admin/resolve-ambiguous.test.ts": 15,
  "test/admin/totals.test.ts": 15,
  "test/commands/migrate.test.ts": 14,
  "test/cache/restore.test.ts": 13,
  "test/transports/unfinished-messages.test.ts": 13,
  "test/commands/other-languages.test.ts": 13,
  "test/transports/batch-stream.test.ts": 13,
  "test/cache/coherence.test.ts": 12,
  "test/contract/wait.test.ts": 12,
  "test/transports/hostile-http2.test.ts": 12,
  "test/client/replicas.test.ts": 12,
  "test/adapters/inbox/crash.test.ts": 12,
  "test/contract/testing-parity.test.ts": 12,
  "test/commands/api-keys.test.ts": 11,
  "test/admin/list-replicas.test.ts": 11,
  "test/commands/doctor.test.ts": 11,
};

/**
 * Starts the slow files of each project first, so that no worker waits for the last one of another. Vitest by itself knows
 * the durations of the machine's last run, and in a new clone only sizes, which show little.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    const secondsOf = ({ moduleId }: TestSpecification) =>
      SLOW_FILES[relative(this.ctx.config.root, moduleId)] ?? 0;
    return projects.flatMap((project) =>
      sorted.filter((file) => file.project === project).sort((a, b) => secondsOf(b) - secondsOf(a)),
    );
  }
}
