import { mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { type Addresses, addressesOf } from "./addresses.ts";
import { ROOT, run } from "./commands.ts";

/** The files of a commit in a folder of their own, in which packages are built. */
export interface Stage {
  readonly dir: string;
  /** Full hash of the commit. */
  readonly commit: string;
  /** Time of the commit, in ISO 8601. */
  readonly committedAt: string;
  readonly version: string;
  readonly addresses: Addresses;
}

/** The packages of a release by their folders, each after those that it is built with. */
export const PACKAGE_DIRS = [
  "clients/typescript",
  "clients/http-proxy",
  "clients/mcp-proxy",
  "clients/cli",
  "server",
] as const;

/**
 * Extracts the current commit into an empty folder. Nothing comes from the working tree but the installed packages, so no
 * file that is not committed can get into a release.
 */
export async function stageCommit(dir: string): Promise<Stage> {
  const [commit = "", committedAt = ""] = (await run(ROOT, ["git", "log", "-1", "--format=%H %cI"]))
    .trim()
    .split(" ");
  await mkdir(dir, { recursive: true });
  await extractCommit(commit, [], dir);
  await linkPackages(dir);
  const { version, repository } = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
  return { dir, commit, committedAt, version, addresses: addressesOf(repository) };
}

/** Extracts files of a commit that match pathspecs of git into an existing folder. */
export async function extractCommit(
  commit: string,
  pathspecs: readonly string[],
  dir: string,
): Promise<void> {
  const archive = join(dir, ".archive.tar");
  await run(ROOT, ["git", "archive", "--format=tar", `--output=${archive}`, commit, "--", ...pathspecs]);
  await run(dir, ["tar", "-xf", archive]);
  await run(dir, ["rm", archive]);
}

/** Links installed packages, except that those of the workspaces are the staged ones. */
async function linkPackages(dir: string): Promise<void> {
  const modules = join(dir, "node_modules");
  await mkdir(join(modules, "@onceward"), { recursive: true });
  for (const name of await readdir(join(ROOT, "node_modules"))) {
    if (name !== "@onceward") await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
  const { workspaces } = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
  for (const workspace of workspaces as readonly string[]) {
    const { name } = JSON.parse(await readFile(join(dir, workspace, "package.json"), "utf8"));
    await symlink(join(dir, workspace), join(modules, name));
  }
}
