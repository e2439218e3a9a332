import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";
import { copyCached } from "../cached-copy.ts";

const run = promisify(execFile);
const CLIENT = fileURLToPath(new URL("../../../clients/typescript/", import.meta.url));
const MODULES = fileURLToPath(new URL("../../../node_modules/", import.meta.url));
const TARBALL = "client.tgz";
const NPM_TIMEOUT_MS = 180_000;
const TSC_TIMEOUT_MS = 120_000;

/** The client as `npm publish` would send it, and a project that has installed it. */
export interface PackedClient {
  readonly tarball: Buffer;
  readonly manifest: Manifest;
  /** A project after `npm install` of only the client and its dependencies. */
  readonly project: string;
}

/** The fields of a package.json that tests read. */
export interface Manifest {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** Packs and installs before the file's first test, and removes it after the last one. */
export function usePackedClient(): () => PackedClient {
  let dir = "";
  let packed: PackedClient;
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), "ow-packed-")));
    packed = await packAndInstall(join(dir, "packed"));
  }, 2 * NPM_TIMEOUT_MS);
  afterAll(() => rm(dir, { recursive: true, force: true }));
  return () => packed;
}

async function packAndInstall(dir: string): Promise<PackedClient> {
  const files = globSync("{../../package-lock.json,*.*,{src,guides}/**/*.*}", { cwd: CLIENT }).sort();
  const inputs = files.flatMap((file) => [file, readFileSync(join(CLIENT, file))]);
  await copyCached({ kind: "client", inputs, make: packClient }, dir);
  const project = join(dir, "project");
  const manifest = await readFile(join(project, "node_modules/@onceward/client/package.json"), "utf8");
  return { tarball: await readFile(join(dir, TARBALL)), manifest: JSON.parse(manifest), project };
}

/** Packs the client into a directory, and installs it in a project there. */
async function packClient(dir: string): Promise<void> {
  const npm = (args: readonly string[], cwd: string) =>
    run("npm", [...args, "--loglevel=error"], { cwd, timeout: NPM_TIMEOUT_MS });
  // A copy is built, so that two processes can do so at once.
  const [client, project] = [`${dir}-client`, join(dir, "project")];
  await cp(CLIENT, client, { recursive: true, filter: (path) => !/\/(node_modules|dist)$/.test(path) });
  await symlink(MODULES, join(client, "node_modules"));
  await mkdir(project, { recursive: true });
  const { stdout } = await npm(["pack", "--json", "--pack-destination", dir], client);
  await rename(join(dir, /"filename": "(.*)"/.exec(stdout)?.[1] ?? ""), join(dir, TARBALL));
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await npm(["install", "--prefer-offline", "--no-audit", "--no-fund", join(dir, TARBALL)], project);
}

/**
 * Links packages of this repository's `node_modules` into a project, and removes earlier links. `folders` has
 * the folders of those that lie elsewhere, by their name.
 */
export async function linkPackages(
  project: string,
  names: readonly string[],
  folders: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const name of names) {
    const link = join(project, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await rm(link, { force: true });
    await symlink(folders[name] ?? join(MODULES, name), link);
  }
}

/**
 * Returns the errors of the compiler in strict mode for a TypeScript file of a project and the declarations
 * it uses.
 */
export async function typeErrors(
  project: string,
  file: string,
  options: readonly string[] = [],
): Promise<string[]> {
  return await runCompiler(project, [
    ...["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", ...options],
    file,
  ]);
}

/** Compiles a project by its tsconfig.json. Returns the compiler's errors. */
export async function compile(project: string): Promise<string[]> {
  return await runCompiler(project, ["--project", project]);
}

async function runCompiler(project: string, args: readonly string[]): Promise<string[]> {
  const tsc = join(MODULES, "typescript/bin/tsc");
  const said = run(process.execPath, [tsc, ...args], { cwd: project, timeout: TSC_TIMEOUT_MS });
  const { stdout } = await said.catch((error: { stdout: string }) => error);
  return stdout.split("\n").filter((line) => /^\S.*error TS/.test(line));
}

/** Returns the Nodes in the PATH by version, always including the running one. */
export async function findNodes(): Promise<ReadonlyMap<string, string>> {
  const nodes = new Map([[process.version, process.execPath]]);
  for (const dir of new Set((process.env.PATH ?? "").split(delimiter))) {
    const node = join(dir, "node");
    const { stdout } = await run(node, ["--version"]).catch(() => ({ stdout: "" }));
    const version = stdout.trim();
    if (version !== "" && !nodes.has(version)) nodes.set(version, node);
  }
  return nodes;
}
