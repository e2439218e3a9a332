import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The files that take more than 10 s of a suite of `.ci/run`, with their seconds beside other work on two cores:
 * the order matters, not the number. Each run prints its own.
 */
export const SLOW_FILES: Readonly<Record<string, number>> = {
  "test/deploy/balancer-waits.test.ts": 61,
  "test/deploy/rehearsal.test.ts": 55,
  "test/deploy/runbook-walk.test.ts": 49,
  "test/deploy/rehearsal-postgres.test.ts": 36,
  "test/deploy/without-feature.test.ts": 31,
  "test/deploy/chart.test.ts": 25,
  "test/deploy/alerts.test.ts": 22,
  "test/deploy/runbook.test.ts": 20,
  "test/deploy/balancer.test.ts": 19,
  "test/deploy/rehearsal-states.test.ts": 40,
  "test/deploy/key-history.test.ts": 15,
  "test/model/mutants.test.ts": 45,
  "test/packaging/package.test.ts": 44,
  "test/embedded/embedded-postgres.test.ts": 40,
  "test/packaging/nestjs.test.ts": 28,
  "test/tools/demo/traffic/traffic.test.ts": 24,
  "test/packaging/first-example.test.ts": 12,
  "test/console/screens.test.ts": 30,
  "test/console/ambiguous.test.ts": 20,
  "test/console/namespaces.test.ts": 18,
  "test/console/newcomer.test.ts": 17,
  "test/console/tenants.test.ts": 15,
  "test/commands/dev.test.ts": 47,
  "test/transports/any-field.test.ts": 46,
  "test/commands/move-tenant.test.ts": 42,
  "test/store/stale-statistics.test.ts": 42,
  "test/commands/pepper.test.ts": 40,
  "test/admin/isolation.test.ts": 36,
  "test/examples/examples.test.ts": 34,
  "test/commands/readme.test.ts": 33,
  "test/admin/background-failures.test.ts": 26,
  "test/adapters/consumers/rabbitmq.test.ts": 26,
  "test/model/replay/replay.test.ts": 24,
  "test/cache/redis-faults.test.ts": 24,
  "test/cache/redis-topologies.test.ts": 23,
  "test/adapters/http/departures.test.ts": 22,
  "test/transports/costly-requests.test.ts": 21,
  "test/commands/upgrade.test.ts": 19,
  "test/commands/migrate.test.ts": 19,
  "test/cli/look.test.ts": 19,
  "test/cache/coherence.test.ts": 18,
  "test/commands/recovery.test.ts": 18,
  "test/commands/systemd.test.ts": 13,
  "test/adapters/inbox/crash.test.ts": 17,
  "test/transports/any-request.test.ts": 16,
  "test/admin/resolve-ambiguous.test.ts": 15,
  "clients/conformance/src/conformance.test.ts": 15,
  "test/transports/hostile-http2.test.ts": 14,
  "test/contract/wait.test.ts": 14,
  "test/commands/serve.test.ts": 14,
  "test/adapters/mcp-proxy/mcp-proxy.test.ts": 14,
  "test/commands/api-keys.test.ts": 13,
  "test/tracing/collector.test.ts": 13,
  "test/transports/drain.test.ts": 13,
  "test/transports/unfinished-messages.test.ts": 13,
  "test/doctor/database-findings.test.ts": 13,
  "test/admin/canary.test.ts": 13,
  "test/doctor/redis-findings.test.ts": 13,
  "test/admin/list-replicas.test.ts": 13,
  "test/store/reencryption.test.ts": 12,
  "test/admin/totals.test.ts": 12,
  "test/transports/batch-stream.test.ts": 12,
  "test/admin/authority.test.ts": 12,
  "test/contract/batch-property.test.ts": 11,
  "test/cache/restore.test.ts": 11,
  "test/store/large-results.test.ts": 11,
  "test/client/replicas.test.ts": 11,
  "test/transports/hostile-tls.test.ts": 10,
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
