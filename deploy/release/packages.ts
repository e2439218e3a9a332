import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./commands.ts";
import { releasedReadme, type Source } from "./readme-links.ts";
import { PACKAGE_DIRS, type Stage } from "./stage.ts";

type Manifest = Readonly<Record<string, unknown>>;

/**
 * Builds and packs every package of a stage as npm would publish it. Returns the tarballs' file names by the names of
 * the packages.
 */
export async function packPackages(stage: Stage, outDir: string): Promise<ReadonlyMap<string, string>> {
  const tarballs = new Map<string, string>();
  const source = { repositoryUrl: stage.addresses.repository, commit: stage.commit };
  for (const workspace of PACKAGE_DIRS) {
    const dir = join(stage.dir, workspace);
    const file = join(dir, "package.json");
    const manifest: Manifest = JSON.parse(await readFile(file, "utf8"));
    const released = releasedManifest(manifest, { ...source, folder: workspace });
    await writeFile(file, `${JSON.stringify(released, null, 2)}\n`);
    await copyFile(join(stage.dir, "LICENSE"), join(dir, "LICENSE"));
    for (const page of ["README.md", ...(workspace === "clients/typescript" ? ["api.md"] : [])]) {
      const path = join(dir, page);
      await writeFile(path, releasedReadme(await readFile(path, "utf8"), workspace, source));
    }
    if (workspace === "server") {
      await run(stage.dir, [
        "node",
        "node_modules/typescript/bin/tsc",
        "--project",
        "server/tsconfig.build.json",
      ]);
      await run(stage.dir, ["npm", "run", "--silent", "build:console"]);
    }
    const printed = await run(dir, [
      "npm",
      "pack",
      "--json",
      "--loglevel=error",
      "--pack-destination",
      outDir,
    ]);
    const [, filename = ""] = /"filename": "(.*)"/.exec(printed) ?? [];
    tarballs.set(String(manifest.name), filename);
  }
  return tarballs;
}

/**
 * Returns the manifest of a released package. It names the commit and the repository's page. The server's points to the compiled program, because
 * Node runs no TypeScript below `node_modules`, and contains the console's page and the OpenAPI document; in the repository it is private, so that its sources are never published.
 */
export function releasedManifest(
  manifest: Manifest,
  { commit, repositoryUrl, folder }: Source & { readonly folder: string },
): Manifest {
  const { private: isPrivate, ...released } = manifest;
  const compiled = isPrivate === true && {
    bin: { "onceward-server": "dist/main.js" },
    files: ["dist", "migrations", "console", "openapi.yaml"],
  };
  return {
    ...released,
    ...compiled,
    homepage: `${repositoryUrl}/tree/${commit}/${folder}#readme`,
    repository: { type: "git", url: `git+${repositoryUrl}.git`, directory: folder },
    gitHead: commit,
  };
}
