import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
/** The repository's folder, whose packages have Node. */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Downloads of Debian and npm packages, and a build, on a busy machine. */
const STEP_TIMEOUT_MS = 20 * 60_000;
const BASE = "localhost/node-base";
/** A Debian that debootstrap of Debian 12 knows; the image's own base is newer. */
const RELEASE = "bookworm";
/** Debian's archive, which the base is made of. */
const MIRROR = "http://deb.debian.org/debian";

/** The paths of the programs that build an image without a container engine, as root. */
export interface ImagePrograms {
  readonly buildah: string;
  readonly debootstrap: string;
}

/** The images of `deploy/Dockerfile`, built without a container engine. */
export interface BuiltImages {
  readonly server: BuiltImage;
  /** The command line, with `onceward http-proxy`. */
  readonly cli: BuiltImage;
  remove(): Promise<void>;
}

/** An image, laid out as a directory. */
export interface BuiltImage {
  /** The root of the image's file system. */
  readonly root: string;
  readonly user: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  /** Empty for an image without one. */
  readonly healthCheck: readonly string[];
  readonly workingDir: string;
}

/**
 * Builds the images with buildah, which runs the build's commands in a chroot. No image can be assumed to be
 * reachable, so the base is made here: a minimal Debian, with Node from the npm package and npm.
 *
 * @param context the folder that the Dockerfile copies from.
 */
export async function buildImages(context: string, programs: ImagePrograms): Promise<BuiltImages> {
  const dir = await mkdtemp(join(tmpdir(), "ow-image-"));
  try {
    return await buildIn(dir, context, programs);
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

async function buildIn(dir: string, context: string, programs: ImagePrograms): Promise<BuiltImages> {
  const buildah = async (...args: string[]) => {
    const store = ["--root", join(dir, "store"), "--runroot", join(dir, "run")];
    const env = { ...process.env, BUILDAH_ISOLATION: "chroot" };
    const options = { cwd: context, env, timeout: STEP_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
    return (await run(programs.buildah, [...store, ...args], options)).stdout.trim();
  };
  const base = await buildah("from", "scratch");
  await buildah("copy", "--quiet", base, await makeBase(dir, programs), "/");
  await buildah("commit", "--quiet", base, BASE);
  await buildah("rm", base);
  // With layers, the second build takes the stages that both have from the first one.
  const options = ["--layers", "--pull-never", "--build-arg", `NODE_IMAGE=${BASE}`];
  const file = ["--file", "deploy/Dockerfile", "--format", "docker"];
  const build = async (name: string, target: readonly string[]): Promise<BuiltImage> => {
    const image = `localhost/${name}`;
    await buildah("bud", ...options, ...file, ...target, "--tag", image, ".");
    const built = await buildah("from", "--pull-never", image);
    const root = join(dir, name);
    // A copy: buildah's own mount would be left behind by a test that is killed.
    await run("cp", ["--archive", await buildah("mount", built), root]);
    await buildah("umount", built);
    const { config } = JSON.parse(await buildah("inspect", "--type", "image", image)).Docker;
    return {
      root,
      user: config.User,
      labels: config.Labels,
      env: Object.fromEntries(config.Env.map((text: string) => text.split("=", 2))),
      entrypoint: config.Entrypoint,
      healthCheck: config.Healthcheck?.Test.slice(1) ?? [],
      workingDir: config.WorkingDir,
    };
  };
  return {
    server: await build("onceward-server", []),
    cli: await build("onceward", ["--target", "cli"]),
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Makes the file system of the base, and returns its directory. */
async function makeBase(dir: string, { debootstrap }: ImagePrograms): Promise<string> {
  const base = join(dir, "base");
  await run(debootstrap, ["--variant=minbase", "--include=libatomic1", RELEASE, base, MIRROR], {
    timeout: STEP_TIMEOUT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  const local = join(base, "usr/local");
  await cp(join(ROOT, "node_modules/node/bin/node"), join(local, "bin/node"));
  const npm = dirname(dirname(await realpath(await programInPath("npm"))));
  await cp(npm, join(local, "lib/node_modules/npm"), { recursive: true });
  await symlink("../lib/node_modules/npm/bin/npm-cli.js", join(local, "bin/npm"));
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  if (authorities !== undefined) {
    // Where a private authority signs what npm downloads.
    await cp(authorities, join(base, "etc/ssl/authorities.pem"), { dereference: true });
    await mkdir(join(local, "etc"), { recursive: true });
    await writeFile(join(local, "etc/npmrc"), "cafile=/etc/ssl/authorities.pem\n");
  }
  await chmod(base, 0o755);
  return base;
}

async function programInPath(name: string): Promise<string> {
  return (await run("sh", ["-c", `command -v ${name}`])).stdout.trim();
}
