import { readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Job {
  readonly if?: string;
  readonly needs?: string;
  readonly "timeout-minutes"?: number;
  readonly steps: readonly Step[];
}

const root = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");
const workflow = parse(read(".github/workflows/ci.yml"));
const jobs: Readonly<Record<string, Job>> = workflow.jobs;
const commandsOf = (job: Job | undefined) => job?.steps.flatMap(({ run }) => run ?? []) ?? [];

test("the forge runs .ci/run, and for a tag the release as a dry run", () => {
  expect(commandsOf(jobs.check)).toContain(".ci/run");
  expect(statSync(new URL(".ci/run", root)).mode & 0o100).toBe(0o100);
  expect(jobs.release).toMatchObject({ needs: "check", if: "startsWith(github.ref, 'refs/tags/v')" });
  expect(commandsOf(jobs.release)).toEqual(["npm ci", 'npm run release:dry -- --tag "$GITHUB_REF_NAME"']);
  expect(JSON.parse(read("package.json")).scripts).toHaveProperty(["release:dry"]);
});

test("the forge's jobs may only read, publish nothing, and are bounded in time", () => {
  expect(workflow.permissions).toEqual({ contents: "read" });
  for (const job of Object.values(jobs)) {
    expect(job).not.toHaveProperty("permissions");
    expect(job["timeout-minutes"]).toBeLessThanOrEqual(90);
    expect(
      commandsOf(job).filter((command) => /publish|docker push|helm push|secrets\./.test(command)),
    ).toEqual([]);
    // A text of an event in a command would be run.
    expect(commandsOf(job).filter((command) => command.includes("${{"))).toEqual([]);
  }
});
