import { existsSync, globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { findProgram } from "../commands.ts";
import { buildImages, type ImagePrograms } from "../image.ts";
import { runInImage } from "../image-container.ts";

/**
 * Returns the programs that build an image without a container engine, or what is missing for it.
 */
export async function imagePrograms(): Promise<ImagePrograms | string> {
  if (process.getuid?.() !== 0) return "buildah needs root for its chroot";
  const [buildah, debootstrap] = await Promise.all(["buildah", "debootstrap"].map(findProgram));
  if (buildah === undefined || debootstrap === undefined) return "there is no buildah or debootstrap";
  return { buildah, debootstrap };
}

/** Builds the images from their context and runs their programs. Returns what did not work. @throws Error if one cannot be built. */
export async function imageProblems(
  context: string,
  programs: ImagePrograms,
  repository: string,
): Promise<readonly string[]> {
  const images = await buildImages(context, programs);
  const programOf = { server: "onceward-server COMMAND", cli: "onceward [options] [command]" };
  try {
    const problems = await Promise.all(
      (["server", "cli"] as const).map(async (name) => {
        const image = images[name];
        const printed = await runInImage(image, [...image.entrypoint, "--help"]);
        return [
          ...(printed.includes(programOf[name])
            ? []
            : [`the program of the image ${name} prints ${printed}`]),
          ...(image.labels["org.opencontainers.image.source"] === repository
            ? []
            : [`the image ${name} lacks its source`]),
          ...(image.user === "1000:1000" ? [] : [`the image ${name} runs as ${image.user}`]),
        ];
      }),
    );
    return problems.flat();
  } finally {
    await images.remove();
  }
}

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
