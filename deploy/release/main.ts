import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCommandLine } from "../../server/dev/command-line.ts";
import { printable } from "../../server/src/commands/printable.ts";
import { packChart, packImageContext, packProto } from "./archives.ts";
import { changelogSection } from "./changelog.ts";
import { contextProblems, imageProblems, imagePrograms } from "./checks/image.ts";
import { installedProblems } from "./checks/installed.ts";
import { goProblems, pythonProblems } from "./checks/languages.ts";
import { licenceProblems } from "./checks/licences.ts";
import { publishProblems, typeProblems } from "./checks/package-problems.ts";
import { secretProblems } from "./checks/secrets.ts";
import { VERSIONED, versionProblems } from "./checks/versions.ts";
import { ROOT, run } from "./commands.ts";
import { hasProgram, packGoModule, packPython } from "./languages.ts";
import { packPackages } from "./packages.ts";
import { relativeLinks } from "./readme-links.ts";
import { bomOf, productionPackages } from "./sbom.ts";
import { PACKAGE_DIRS, type Stage, stageCommit } from "./stage.ts";

const USAGE = `npm run release:dry -- [OPTIONS]: makes everything that a release of the current commit consists of in release/,
and checks it. Publishes nothing. Exits 1 if a check fails.
  --tag v1.2.3     the tag that the version must agree with
  --without-image  build no images`;

const OUT = join(ROOT, "release");
const { values } = readCommandLine(USAGE, {
  options: { tag: { type: "string" }, "without-image": { type: "boolean" } },
});
const dir = await mkdtemp(join(tmpdir(), "ow-stage-"));
let failed = 0;
try {
  await rm(OUT, { recursive: true, force: true });
  await mkdir(OUT);
  await release(await stageCommit(join(dir, "stage")));
} catch (error) {
  failed += 1;
  console.log(`FAILED to make the release\n${printable((error as Error).message)}`);
} finally {
  await rm(dir, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;
console.log(failed === 0 ? "\nEverything holds; nothing is published." : `\n${failed} checks failed.`);

async function release(stage: Stage): Promise<void> {
  console.log(`Onceward ${stage.version} of commit ${stage.commit}, in release/`);
  const uncommitted = await run(ROOT, ["git", "status", "--porcelain"]);
  if (uncommitted !== "") console.log("Changes that are not committed are not part of it.");
  const staged = (path: string) => readFile(join(stage.dir, path), "utf8");

  const versioned = await Promise.all(VERSIONED.map(async (path) => [path, await staged(path)] as const));
  await check("one version", async () => versionProblems(Object.fromEntries(versioned), values.tag));
  await check("CHANGELOG.md describes it", async () => {
    await writeFile(join(OUT, "CHANGELOG.md"), changelogSection(await staged("CHANGELOG.md"), stage.version));
    return [];
  });

  const { packages: lock } = JSON.parse(await staged("package-lock.json"));
  for (const workspace of PACKAGE_DIRS) {
    const components = productionPackages(lock, workspace);
    const { name = "" } = components.get(workspace) ?? {};
    const bom = JSON.stringify(bomOf(components, workspace, stage), null, 2);
    await writeFile(join(OUT, `${fileName(name)}-${stage.version}.cdx.json`), `${bom}\n`);
    await check(`licences of ${name} and its ${components.size - 1} dependencies`, async () =>
      licenceProblems(components.values()),
    );
  }

  const archives = [
    await packProto(stage, OUT),
    await packImageContext(stage, OUT),
    await packChart(stage, OUT),
  ];
  const tarballs = await packPackages(stage, OUT);
  for (const [name, file] of tarballs) {
    const tarball = await readFile(join(OUT, file));
    await check(`publint of ${name}`, () => publishProblems(tarball));
    if (name === "@onceward/client") await check(`types of ${name}`, () => typeProblems(tarball));
  }
  for (const file of [...archives, ...tarballs.values()]) {
    const unpacked = await unpack(file);
    await check(`no secret in ${file}`, () => secretProblems(unpacked, [ROOT, stage.dir]));
    if (file.includes("image-context")) {
      await check("the images have everything that they are built from", () => contextProblems(unpacked));
      await checkImage(stage, unpacked);
    }
  }
  for (const file of tarballs.values()) {
    const readme = await readFile(join(dir, "unpacked", file, "README.md"), "utf8");
    await check(`links of the README in ${file}`, async () => relativeLinks(readme));
  }
  const paths = [...tarballs.values()].map((file) => join(OUT, file));
  await check("the tarballs work outside the repository", () => installedProblems(paths, stage.version));
  const others = await packOtherLanguages(stage);
  await writeProvenance(stage, [...archives, ...tarballs.values(), ...others]);
  console.log(
    "skip   signatures, attestations and other architectures: .github/workflows/release.yml makes them",
  );
}

/** Builds the images for this machine's architecture, as far as its tools are here: minutes, and 200 MB of downloads. */
async function checkImage({ addresses }: Stage, context: string): Promise<void> {
  const programs = values["without-image"] === true ? "--without-image" : await imagePrograms();
  if (typeof programs === "string") console.log(`skip   the images: ${programs}`);
  else
    await check("the images of the server and the command line are built, and their programs start", () =>
      imageProblems(context, programs, addresses.repository),
    );
}

/** Packs and checks the clients of other languages, as far as their tools are here. Returns the files' names. */
async function packOtherLanguages(stage: Stage): Promise<readonly string[]> {
  const files = [await packGoModule(stage, OUT)];
  if (await hasProgram("go", "version"))
    await check("the Go module works outside the repository", () =>
      goProblems(join(OUT, files[0] ?? ""), stage.version, stage.addresses.goModule),
    );
  else console.log("skip   the Go module outside the repository: there is no go");
  if (!(await hasProgram("python3", "-m", "venv", "--help"))) {
    console.log("skip   the Python client: there is no python3 with venv");
    return files;
  }
  await check("the Python client is built", async () => {
    files.push(...(await packPython(stage, OUT)));
    return [];
  });
  for (const file of files.slice(1))
    await check(`${file} works outside the repository`, () => pythonProblems(join(OUT, file)));
  return files;
}

/** Prints the result of a check. A check that throws has failed. */
async function check(name: string, findProblems: () => Promise<readonly string[]>): Promise<void> {
  const problems = await findProblems().catch((error: Error) => [error.message]);
  console.log(`${problems.length === 0 ? "ok    " : "FAILED"} ${name}`);
  for (const problem of problems) console.log(`         ${printable(problem)}`);
  if (problems.length > 0) failed += 1;
}

/** Unpacks an archive without its outermost folder; returns the folder. */
async function unpack(file: string): Promise<string> {
  const unpacked = join(dir, "unpacked", file);
  await mkdir(unpacked, { recursive: true });
  await run(unpacked, ["tar", "-xzf", join(OUT, file), "--strip-components=1"]);
  return unpacked;
}

/** Writes which commit the files come from, and their digests. */
async function writeProvenance(stage: Stage, files: readonly string[]): Promise<void> {
  const entries = await Promise.all(
    files.map(async (name) => {
      const bytes = await readFile(join(OUT, name));
      return { name, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
    }),
  );
  const { version, commit, committedAt, addresses } = stage;
  const provenance = {
    name: "onceward",
    version,
    commit,
    committedAt,
    images: addresses.images,
    charts: addresses.charts,
    node: process.version,
    files: entries,
  };
  await writeFile(join(OUT, "release.json"), `${JSON.stringify(provenance, null, 2)}\n`);
  const sums = entries.map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  await writeFile(join(OUT, "SHA256SUMS"), sums.join(""));
  for (const { name, bytes } of entries) console.log(`${String(bytes).padStart(9)} ${name}`);
}

/** As npm names a tarball: `@onceward/client` is `onceward-client`. */
function fileName(name: string): string {
  return name.replace("@", "").replace("/", "-");
}
