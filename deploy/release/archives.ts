import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Addresses } from "./addresses.ts";
import { findProgram, run } from "./commands.ts";
import { extractCommit, type Stage } from "./stage.ts";

/** Archives are the same for the same commit: sorted, without owners and with the commit's time. */
const REPRODUCIBLE = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];

/** Packs the build context of the image: what `.dockerignore` admits, with the Dockerfile. Returns the file's name. */
export async function packImageContext(stage: Stage, outDir: string): Promise<string> {
  const pathspecs = contextPathspecs(await readFile(join(stage.dir, ".dockerignore"), "utf8"));
  return packFiles(stage, "onceward-image-context", pathspecs, outDir);
}

/** Packs the contract with its lint rules. Returns the file's name. */
export function packProto(stage: Stage, outDir: string): Promise<string> {
  return packFiles(stage, "onceward-proto", ["proto", "buf.yaml", "LICENSE"], outDir);
}

/**
 * Packs the chart with Helm, or, where there is none, with tar in Helm's layout. Its default images are the released ones. Returns
 * the file's name.
 */
export async function packChart(stage: Stage, outDir: string): Promise<string> {
  const name = `onceward-${stage.version}.tgz`;
  const helm = await findProgram("helm");
  const charts = join(stage.dir, "deploy/helm");
  const values = join(charts, "onceward/values.yaml");
  await writeFile(values, releasedValues(await readFile(values, "utf8"), stage.addresses));
  if (helm !== undefined) await run(charts, [helm, "package", "onceward", "--destination", outDir]);
  else await tar(stage, charts, ["--exclude=onceward/ci", "onceward"], join(outDir, name));
  return name;
}

/** Returns the chart's values with the addresses of the released images. @throws Error if they do not name those of a checkout. */
export function releasedValues(values: string, { images }: Addresses): string {
  const locals = [
    ["repository: onceward-server\n", `repository: ${images.server}\n`],
    ["repository: onceward\n", `repository: ${images.cli}\n`],
  ] as const;
  return locals.reduce((text, [local, released]) => {
    if (!text.includes(local)) throw new Error(`values.yaml has no ${local.trim()}`);
    return text.replace(local, released);
  }, values);
}

async function packFiles(
  stage: Stage,
  name: string,
  pathspecs: readonly string[],
  outDir: string,
): Promise<string> {
  const folder = `${name}-${stage.version}`;
  const dir = join(stage.dir, ".archives", folder);
  await mkdir(dir, { recursive: true });
  await extractCommit(stage.commit, pathspecs, dir);
  await tar(stage, join(stage.dir, ".archives"), [folder], join(outDir, `${folder}.tar.gz`));
  return `${folder}.tar.gz`;
}

function tar(stage: Stage, dir: string, what: readonly string[], file: string): Promise<string> {
  return run(dir, ["tar", ...REPRODUCIBLE, `--mtime=${stage.committedAt}`, "-czf", file, ...what]);
}

/**
 * Translates `.dockerignore` to pathspecs of git.
 *
 * @throws Error for a form that this translation does not have: rules must exclude everything, admit paths, and exclude
 * others again, in this order.
 */
export function contextPathspecs(dockerignore: string): readonly string[] {
  const [first, ...rules] = dockerignore.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const excluding = rules.findIndex((rule) => !rule.startsWith("!"));
  const isOrdered = rules.slice(excluding).every((rule) => !rule.startsWith("!"));
  if (first !== "*" || excluding < 1 || !isOrdered)
    throw new Error(".dockerignore has a form that is not understood");
  const admitted = rules
    .slice(0, excluding)
    .map((rule) => `:(glob)${rule.slice(1)}${isFolder(rule) ? "/**" : ""}`);
  const excluded = rules
    .slice(excluding)
    .flatMap((rule) => [`:(exclude,glob)${rule}`, `:(exclude,glob)${rule}/**`]);
  return ["deploy/Dockerfile", ".dockerignore", ...admitted, ...excluded];
}

/** Whether a rule admits a folder: its last part has no ending. */
function isFolder(rule: string): boolean {
  return !/\.[^/]*$/.test(rule);
}
