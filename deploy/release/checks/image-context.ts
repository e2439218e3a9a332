import { existsSync, globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Returns the files that the Dockerfile copies from the build context and that the context lacks. */
export async function contextProblems(dir: string): Promise<readonly string[]> {
  if (!existsSync(join(dir, "deploy/Dockerfile"))) return ["the context has no deploy/Dockerfile"];
  const dockerfile = await readFile(join(dir, "deploy/Dockerfile"), "utf8");
  const copies = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)];
  const sources = copies.flatMap(([, paths = ""]) => paths.split(" "));
  if (sources.length === 0) return ["the Dockerfile copies nothing"];
  return sources
    .filter((path) => globSync(path, { cwd: dir }).length === 0)
    .map((path) => `the context lacks ${path}`);
}
