import { readdirSync, readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Job {
  readonly if?: string;
  readonly needs?: readonly string[];
  readonly container?: string;
  readonly "timeout-minutes"?: number;
  readonly steps: readonly Step[];
}

interface Workflow {
  readonly permissions: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

const root = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");
const workflows = readdirSync(new URL(".github/workflows", root)).map((name) => {
  const text = read(`.github/workflows/${name}`);
  return { name, text, workflow: parse(text) as Workflow };
});
const ci = workflows.find(({ name }) => name === "ci.yml")?.workflow.jobs ?? {};
const commandsOf = (job: Job | undefined) => job?.steps.flatMap(({ run }) => run ?? []) ?? [];
const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

test("the forge runs .ci/run as root, and for a tag the release as a dry run", () => {
  expect(commandsOf(ci.check)).toContain(".ci/run");
  expect(ci.check?.container).toMatch(/^node:\d+-bookworm$/);
  expect(statSync(new URL(".ci/run", root)).mode & 0o100).toBe(0o100);
  expect(ci.release).toMatchObject({
    needs: ["check", "chart"],
    if: "startsWith(github.ref, 'refs/tags/v')",
  });
  expect(commandsOf(ci.release)).toEqual(["npm ci", 'npm run release:dry -- --tag "$GITHUB_REF_NAME"']);
});

test("every suite of package.json runs for a change or at night, and every script that runs exists", () => {
  const commands = workflows.flatMap(({ workflow }) => Object.values(workflow.jobs).flatMap(commandsOf));
  const text = [read(".ci/run"), ...commands].join("\n");
  const run = [...text.matchAll(/npm (?:run )?(test\b[\w:-]*|[\w:-]+)/g)].map(([, script]) => script);
  const suites = Object.keys(scripts).filter((name) => /^(test|chaos|fuzz|measure|demo$)/.test(name));
  expect(suites.filter((name) => !run.includes(name))).toEqual([]);
  expect(run.filter((name) => name !== "ci" && !(name !== undefined && name in scripts))).toEqual([]);
});

test.each(workflows)(
  "the jobs of $name may only read, publish nothing, and are bounded in time",
  ({ workflow }) => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    for (const job of Object.values(workflow.jobs)) {
      expect(job).not.toHaveProperty("permissions");
      expect(job["timeout-minutes"]).toBeLessThanOrEqual(90);
      expect(
        commandsOf(job).filter((command) => /publish|docker push|helm push|secrets\./.test(command)),
      ).toEqual([]);
      // A text of an event in a command would be run.
      expect(commandsOf(job).filter((command) => command.includes("${{"))).toEqual([]);
    }
  },
);

test.each(workflows)(
  "actions of $name are named by the hash of a commit, with its version beside it",
  ({ text }) => {
    const uses = [...text.matchAll(/uses: (.*)/g)].map(([, action]) => action);
    expect(uses.length).toBeGreaterThan(0);
    for (const action of uses) expect(action).toMatch(/^actions\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  },
);
