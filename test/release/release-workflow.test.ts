import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { addressesOf } from "../../deploy/release/addresses.ts";
import { PACKAGE_DIRS } from "../../deploy/release/stage.ts";
import { newDir } from "../support/new-dir.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 60_000;
const WORKFLOW = new URL("../../.github/workflows/release.yml", import.meta.url);
const ADDRESSES = addressesOf("https://github.com/acme/once");
const SERVER = ADDRESSES.images.server;

/** Stands for every program that publishes: writes down its arguments, and answers as far as the steps read answers. */
const STAND_IN = `#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
case "$(basename "$0") $*" in
  *"$FAILING"*) [ -z "$FAILING" ] || exit 1 ;;
esac
case "$*" in
  # Or the program before it in the pipe could not write.
  *--password-stdin) cat > /dev/null ;;
  "buildx build"*) echo '{"containerimage.digest": "sha256:built"}' > build.json ;;
  *"imagetools inspect"*) echo '{"digest": "sha256:both"}' ;;
  push*) echo "Digest: sha256:chart" ;;
esac
`;
/** Stands for jq, which not every machine has: the workflow's filters are JavaScript, but for a name in quotes. */
const JQ = `#!${process.execPath}
const [filter, file] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const text = require("node:fs").readFileSync(file ?? 0, "utf8");
const path = filter.replace(/^\\.(".*")$/, "[$1]");
const value = text.trim() && new Function("env", "object", "return object" + path)(process.env, JSON.parse(text));
if (!value) process.exit(1);
console.log(value);
`;

/** Runs the steps of a job as the forge does, where nothing is published. @returns the commands of stand-ins, and the outputs. */
async function runJob(name: string, { failing = "" } = {}) {
  const dir = await newDir();
  await mkdir(join(dir, "bin"));
  const programs = {
    jq: JQ,
    ...Object.fromEntries(["docker", "cosign", "helm", "npm", "gh"].map((each) => [each, STAND_IN])),
  };
  for (const [program, text] of Object.entries(programs)) {
    await writeFile(join(dir, "bin", program), text);
    await chmod(join(dir, "bin", program), 0o755);
  }
  await mkdir(join(dir, "release"));
  await writeFile(join(dir, "release/release.json"), JSON.stringify(ADDRESSES));
  for (const file of ["onceward-1.2.3-py3-none-any.whl", "onceward-1.2.3.tar.gz"])
    await writeFile(join(dir, "release", file), "");
  await mkdir(join(dir, "onceward/deploy"), { recursive: true });
  await run("tar", ["-czf", "release/onceward-image-context-1.2.3.tar.gz", "onceward"], { cwd: dir });
  await mkdir(join(dir, "digests"));
  await writeFile(join(dir, "digests/x86_64"), "sha256:one\n");
  await writeFile(join(dir, "digests/aarch64"), "sha256:two\n");
  const env = {
    ...{
      PATH: `${join(dir, "bin")}:${process.env.PATH}`,
      LOG: join(dir, "log"),
      FAILING: failing,
      IMAGE: "server",
    },
    ...{
      GITHUB_OUTPUT: join(dir, "output"),
      GITHUB_REF_NAME: "v1.2.3",
      GITHUB_SHA: "c0ffee",
      GITHUB_ACTOR: "bot",
    },
    ...{ TOKEN: "t", GH_REPO: "acme/once" },
  };
  const { jobs } = parse(await readFile(WORKFLOW, "utf8"));
  for (const { run: text } of jobs[name].steps.filter((step: { run?: string }) => step.run !== undefined)) {
    await writeFile(join(dir, "step.sh"), text);
    const shell = ["--noprofile", "--norc", "-eo", "pipefail", join(dir, "step.sh")];
    const ended = await run("bash", shell, { cwd: dir, env, timeout: TIMEOUT_MS }).catch((error) => {
      if (failing === "") throw error;
    });
    if (ended === undefined) break;
  }
  const read = (file: string) => readFile(join(dir, file), "utf8").catch(() => "");
  const commands = (await read("log"))
    .trim()
    .split("\n")
    .filter((line) => !line.includes(" login "));
  return { commands, output: await read("output"), read, dir };
}

test("the step that builds an image pushes it without a tag, and keeps its digest", async () => {
  const { commands, read } = await runJob("image");
  const [, build = ""] = commands;
  expect(build).toContain("--target server ");
  expect(build).toContain("--label org.opencontainers.image.version=1.2.3 ");
  expect(build).toContain(
    `--output type=image,name=${SERVER},push-by-digest=true,name-canonical=true,push=true `,
  );
  const { stdout: machine } = await run("uname", ["-m"]);
  expect(await read(`digest/${machine.trim()}`)).toBe("sha256:built\n");
});

test("the step that publishes an image tags both architectures, and signs the tag's digest", async () => {
  const { commands, output } = await runJob("publish-image");
  expect(commands).toEqual([
    expect.stringMatching(
      `^docker buildx imagetools create --tag ${SERVER}:1.2.3 ${SERVER}@sha256:(one|two) ${SERVER}@sha256:(one|two)$`,
    ),
    expect.stringContaining(`docker buildx imagetools inspect ${SERVER}:1.2.3 `),
    `cosign sign --yes --recursive ${SERVER}@sha256:both`,
  ]);
  expect(output).toBe(`name=${SERVER}\ndigest=sha256:both\n`);
});

test("the step that publishes the chart signs the digest that the registry answers", async () => {
  const { commands } = await runJob("publish-chart");
  expect(commands).toEqual([
    `helm push release/onceward-1.2.3.tgz oci://${ADDRESSES.charts}`,
    `cosign sign --yes ${ADDRESSES.charts}/onceward@sha256:chart`,
  ]);
});

test("the packages of npm are published one after another, and those of PyPI lie alone in dist/", async () => {
  const { commands } = await runJob("publish-npm");
  expect(commands.slice(1)).toHaveLength(PACKAGE_DIRS.length);
  expect(commands[1]).toBe("npm publish ./release/onceward-client-1.2.3.tgz --access public --provenance");
  const { dir } = await runJob("publish-pypi");
  const { stdout } = await run("ls", [join(dir, "dist")]);
  expect(stdout).toBe("onceward-1.2.3-py3-none-any.whl\nonceward-1.2.3.tar.gz\n");
});

test("the last step tags the Go module before it makes the release of all files", async () => {
  const { commands } = await runJob("publish-files");
  expect(commands).toEqual([
    "gh api repos/acme/once/git/refs --field ref=refs/tags/clients/go/v1.2.3 --field sha=c0ffee",
    expect.stringMatching(
      /^gh release create v1\.2\.3 release\/.* --verify-tag --title v1\.2\.3 --notes-file release\/CHANGELOG\.md$/,
    ),
  ]);
});

test("only jobs that wait for a maintainer's approval may sign or publish", async () => {
  const { jobs } = parse(await readFile(WORKFLOW, "utf8"));
  const entries = Object.entries<{ environment?: string; permissions?: Record<string, string> }>(jobs);
  const signing = entries.filter(([, { permissions }]) => permissions?.["id-token"] === "write");
  expect(signing.length).toBeGreaterThan(4);
  expect(signing.filter(([, { environment }]) => environment !== "release").map(([name]) => name)).toEqual(
    [],
  );
  const { commands } = await runJob("sign-files");
  expect(commands).toEqual(["cosign sign-blob --yes --bundle SHA256SUMS.sigstore.json release/SHA256SUMS"]);
  const { commands: ofNpm } = await runJob("publish-npm");
  expect(ofNpm[0]).toMatch(/^npm install --global npm@\d+\.\d+\.\d+$/);
});

test.each([
  ["publish-image", "imagetools inspect"],
  ["publish-chart", "helm push"],
])("%s signs nothing if %s fails", async (job, failing) => {
  const { commands } = await runJob(job, { failing });
  expect(commands.join("\n")).toContain(failing);
  expect(commands.filter((command) => command.startsWith("cosign"))).toEqual([]);
});
