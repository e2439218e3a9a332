import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { addressesOf } from "../../deploy/release/addresses.ts";
import { PACKAGE_DIRS } from "../../deploy/release/stage.ts";
import { LAB } from "../lab/main.ts";

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly if?: string;
  readonly with?: { readonly path?: string };
}

interface Job {
  readonly uses?: string;
  readonly environment?: string;
  readonly permissions?: unknown;
  readonly needs?: readonly string[];
  readonly container?: string;
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly unknown[]>> };
  readonly "timeout-minutes"?: number;
  readonly steps?: readonly Step[];
}

interface Workflow {
  readonly on: unknown;
  readonly permissions: unknown;
  readonly defaults: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

const root = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");
const workflows = readdirSync(new URL(".github/workflows", root)).map((name) => {
  const text = read(`.github/workflows/${name}`);
  return { name, text, workflow: parse(text) as Workflow };
});
const ci = workflows.find(({ name }) => name === "ci.yml")?.workflow.jobs ?? {};
const commandsOf = (job: Job | undefined) => job?.steps?.flatMap(({ run }) => run ?? []) ?? [];
const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

test("the forge runs .ci/run as root", () => {
  expect(commandsOf(ci.check)).toContain(".ci/run");
  expect(ci.check?.container).toMatch(/^node:\d+-bookworm$/);
  expect(statSync(new URL(".ci/run", root)).mode & 0o100).toBe(0o100);
});

describe("a release", () => {
  const { on, jobs } = workflows.find(({ name }) => name === "release.yml")?.workflow ?? {};
  const publishing = Object.entries(jobs ?? {}).filter(([name]) => name.startsWith("publish-"));

  test("begins with a tag, and publishes only after checks, dry run and approval", () => {
    expect(on).toEqual({ push: { tags: ["v*"] } });
    expect(jobs?.ci?.uses).toBe("./.github/workflows/ci.yml");
    expect(jobs?.files?.needs).toEqual(["ci"]);
    expect(commandsOf(jobs?.files).slice(0, 2)).toEqual([
      "npm ci",
      'npm run release:dry -- --tag "$GITHUB_REF_NAME"',
    ]);
    expect(jobs?.image?.needs).toEqual(["files"]);
    expect(jobs?.docs?.needs).toEqual(["ci"]);
    for (const [name, job] of publishing) {
      expect([name, job.environment]).toEqual([name, "release"]);
      expect(
        job.needs?.every(
          (needed) => ["image", "docs", "sign-files"].includes(needed) || needed.startsWith("publish-"),
        ),
      ).toBe(true);
    }
  });

  test("publishes every package, the images, the chart, the Python client and the Go module", () => {
    const commands = publishing.flatMap(([, job]) => commandsOf(job)).join("\n");
    const [, names = ""] = /for name in (.*); do\n *npm publish .*--provenance/.exec(commands) ?? [];
    const packages = PACKAGE_DIRS.map((dir) => JSON.parse(read(`${dir}/package.json`)).name);
    expect(names.split(" ").map((name) => `@onceward/${name}`)).toEqual(packages);
    expect(commands).toMatch(/imagetools create/);
    expect(commands).toMatch(/cosign sign --yes --recursive/);
    expect(commands).toMatch(/helm push/);
    expect(commands).toMatch(/refs\/tags\/clients\/go\/\$GITHUB_REF_NAME/);
    expect(publishing.flatMap(([, job]) => job.steps ?? []).map(({ uses }) => uses?.split("@")[0])).toContain(
      "pypa/gh-action-pypi-publish",
    );
  });

  test("builds, signs and attests each image of release.json before the chart that names it", () => {
    const images = Object.keys(addressesOf("https://github.com/acme/once").images);
    const { image: built, architecture } = jobs?.image?.strategy?.matrix ?? {};
    expect([built, architecture]).toEqual([images, ["amd64", "arm64"]]);
    expect(jobs?.["publish-image"]?.strategy?.matrix).toEqual({ image: images });
    for (const image of images)
      expect(read("deploy/Dockerfile")).toMatch(new RegExp(`^FROM .* AS ${image}$`, "m"));
    const [build = ""] = commandsOf(jobs?.image).filter((command) => command.includes("buildx build"));
    expect(build).toMatch(
      /\.images\[env\.IMAGE\][\s\S]*--target "\$IMAGE" --sbom=true --provenance=mode=max/,
    );
    const publish = jobs?.["publish-image"]?.steps ?? [];
    expect(publish.map(({ uses }) => uses?.split("@")[0])).toContain("actions/attest-build-provenance");
    expect(jobs?.["publish-chart"]?.needs).toEqual(["publish-image"]);
  });

  test("gives each job only the rights that it needs, and no job a stored secret", () => {
    const rights = Object.fromEntries(
      Object.entries(jobs ?? {}).map(([name, { permissions }]) => [name, permissions]),
    );
    const identity = { "id-token": "write", attestations: "write" };
    expect(rights).toEqual({
      ci: undefined,
      files: undefined,
      "sign-files": identity,
      image: { packages: "write" },
      "publish-image": { packages: "write", ...identity },
      "publish-chart": { packages: "write", "id-token": "write" },
      "publish-npm": { "id-token": "write" },
      "publish-pypi": { "id-token": "write" },
      docs: undefined,
      "publish-docs": { pages: "write", "id-token": "write" },
      "publish-files": { contents: "write" },
    });
  });
});

/** Programs of `npm run lab` that no workflow runs: their tests are in `npm run test:lab`. */
const BY_HAND = ["model", "insight", "keys", "sql", "traffic"];

test("every suite of package.json runs for a change or at night; every script exists", () => {
  const commands = workflows.flatMap(({ workflow }) => Object.values(workflow.jobs).flatMap(commandsOf));
  const text = [read(".ci/run"), ...commands].join("\n");
  const run = [...text.matchAll(/(?:npm (?:run (?:lab -- )?)?|--project=)([\w:-]+)/g)].map(
    ([, name = ""]) => name,
  );
  const suites = [...Object.keys(scripts).filter((name) => /^(test|chaos)/.test(name)), ...Object.keys(LAB)];
  expect(suites.filter((name) => ![...run, ...BY_HAND].includes(name))).toEqual([]);
  expect(run).toContain("citus");
  const known = [
    "ci",
    "install",
    "publish",
    "citus",
    "service",
    ...Object.keys(scripts),
    ...Object.keys(LAB),
  ];
  expect(run.filter((name) => !known.includes(name))).toEqual([]);
});

test("a run of chaos that fails keeps its failures, and no other run of the night is left out", () => {
  const jobs = Object.values(workflows.find(({ name }) => name === "nightly.yml")?.workflow.jobs ?? {});
  const ofChaos = jobs.filter((job) => commandsOf(job).some((command) => /^npm run chaos /.test(command)));
  expect(ofChaos).toHaveLength(2);
  for (const { steps = [] } of ofChaos) {
    const kept = steps.filter((step) => step.if === "failure()").map((step) => step.with?.path);
    expect(kept).toEqual(["chaos-failures/"]);
    const [, ...later] = steps.filter(({ run }) => /^npm run (chaos|lab) /.test(run ?? ""));
    for (const step of later) expect(step.if).toContain("!cancelled()");
  }
});

test.each(workflows.filter(({ name }) => name !== "release.yml"))(
  "the jobs of $name may only read, and publish nothing",
  ({ workflow }) => {
    for (const job of Object.values(workflow.jobs)) {
      expect(job).not.toHaveProperty("permissions");
      expect(
        commandsOf(job).filter((command) => /publish|docker push|helm push|gh release/.test(command)),
      ).toEqual([]);
    }
  },
);

test.each(workflows)(
  "the jobs of $name only read by default, have no stored secret, and are bounded in time",
  ({ workflow, text }) => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    expect(text).not.toContain("secrets.");
    for (const job of Object.values(workflow.jobs)) {
      if (job.uses === undefined) expect(job["timeout-minutes"]).toBeLessThanOrEqual(90);
      // A text of an event in a command would be run.
      expect(commandsOf(job).filter((command) => command.includes("${{"))).toEqual([]);
    }
  },
);

test.each(workflows)(
  "actions of $name are named by the hash of a commit, with its version beside it",
  ({ text }) => {
    const uses = [...text.matchAll(/uses: ([^.].*)/g)].map(([, action]) => action);
    expect(uses.length).toBeGreaterThan(0);
    for (const action of uses)
      expect(action).toMatch(/^(actions|sigstore|pypa)\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  },
);

test.each(workflows)(
  "each step of $name is valid bash, and ends if a pipe fails or a value is missing",
  ({ workflow }) => {
    // With it, the forge runs `bash -eo pipefail`; without, `bash -e`.
    expect(workflow.defaults).toEqual({ run: { shell: "bash" } });
    for (const command of Object.values(workflow.jobs).flatMap(commandsOf)) {
      execFileSync("bash", ["-n"], { input: command, stdio: ["pipe", "pipe", "pipe"] });
      expect(command).not.toMatch(/jq (?!--exit-status)/);
    }
  },
);
