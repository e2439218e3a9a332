import { spawnSync } from "node:child_process";
import { canLimitMemory } from "./support/processes/memory-cgroup.ts";

/** Tests that may be skipped in continuous integration. */
export interface AllowedSkip {
  /** The path of the test file from the root; of a test in Go, the path of its package. */
  readonly file: string;
  /** Matches the full names of the tests; undefined: all tests of the file. */
  readonly tests?: RegExp;
  /** What the tests need, and where they run instead. */
  readonly reason: string;
  /** Whether this machine lacks what they need; undefined: the tests need a variable that no job of `.ci/run` sets. */
  readonly when?: () => boolean;
}

/** All tests that may be skipped in continuous integration; every other skipped test fails the run. */
export const SKIPS: readonly AllowedSkip[] = [
  {
    file: "test/commands/other-languages.test.ts",
    reason: "A compiler and packages of Java, and grpcurl; the nightly job `languages` installs them.",
    when: mayNotDownload,
  },
  {
    file: "test/commands/python-client.test.ts",
    reason: "Packages of PyPI; the nightly job `languages` installs them.",
    when: mayNotDownload,
  },
  {
    file: "test/commands/one-route.test.ts",
    reason: "Packages of PyPI and modules of Go's proxy; the nightly job `languages` installs them.",
    when: mayNotDownload,
  },
  {
    file: "test/commands/go-client.test.ts",
    reason: "Modules of Go's proxy; the nightly job `languages` downloads them.",
    when: mayNotDownload,
  },
  {
    file: "test/deploy/image.test.ts",
    reason:
      "The image takes minutes and a chroot to build; the nightly job `image` sets ONCEWARD_TEST_IMAGE.",
  },
  {
    file: "test/deploy/chart.test.ts",
    reason: "Helm is compiled by Go from its module; the job `chart` of the workflow has Go.",
    when: () => !isInstalled("go", "version") && !isInstalled("helm", "version"),
  },
  {
    file: "test/deploy/chart-page.test.ts",
    reason: "Helm is compiled by Go from its module; the job `chart` of the workflow has Go.",
    when: () => !isInstalled("go", "version") && !isInstalled("helm", "version"),
  },
  {
    file: "test/optional/kubernetes.test.ts",
    reason: "Go compiles Kubernetes for many minutes; ONCEWARD_TEST_KUBERNETES names a folder for it.",
  },
  {
    file: "test/lab/chaos/disk.test.ts",
    reason: "A disk of its own needs the right to mount, which most containers lack.",
    when: cannotMount,
  },
  {
    file: "test/transports/limited-memory.test.ts",
    tests: /limit of its container/,
    reason: "A memory limit of the kernel needs the right to make cgroups, which most containers lack.",
    when: () => !canLimitMemory(),
  },
  {
    file: "test/deploy/runbook-walk.test.ts",
    tests: /the disk is full/,
    reason: "A disk of its own needs the right to mount, which most containers lack.",
    when: cannotMount,
  },
  {
    file: "test/deploy/rehearsal-postgres.test.ts",
    tests: /a disk that is full/,
    reason: "A disk of its own needs the right to mount, which most containers lack.",
    when: cannotMount,
  },
];

/** Whether a test may be skipped on this machine. @param path as AllowedSkip.file. */
export function isListed(path: string, name: string): boolean {
  return SKIPS.some(
    (skip) => skip.file === path && (skip.tests?.test(name) ?? true) && (skip.when?.() ?? true),
  );
}

/** `npm run test:languages` may, and then skips nothing. */
function mayNotDownload(): boolean {
  return process.env.ONCEWARD_TEST_DOWNLOADS !== "true";
}

function cannotMount(): boolean {
  return process.getuid?.() !== 0 || !isInstalled("unshare", "--mount", "true");
}

function isInstalled(program: string, ...args: string[]): boolean {
  return spawnSync(program, args).status === 0;
}
