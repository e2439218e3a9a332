import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { Addresses } from "../../server/src/replica/server.ts";
import type { BuiltImage } from "./image.ts";

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 60_000;

/**
 * Runs a program on the image's file system: read-only, as the image's user, without privileges, and with the
 * image's environment and working directory. The network is this machine's.
 */
const CONTAINER = `
root=$0
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --reuid="\${IDS%:*}" --regid="\${IDS#*:}" --clear-groups --no-new-privs --bounding-set=-all \\
  env --ignore-environment "$@"`;

type Variables = Readonly<Record<string, string>>;

/** Returns the arguments of `unshare` that run a command of the image. */
function argumentsOf(image: BuiltImage, command: readonly string[], variables: Variables): readonly string[] {
  const settings = Object.entries({ ...image.env, ...variables }).map(([name, value]) => `${name}=${value}`);
  const words = [`--chdir=${image.workingDir}`, ...settings, ...command];
  return ["--mount", "--propagation", "private", "sh", "-ec", CONTAINER, image.root, ...words];
}

function environmentOf({ user }: BuiltImage): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, IDS: user };
}

/** Runs a command of the image to its end. @returns its standard output. @throws if it fails. */
export async function runInImage(
  image: BuiltImage,
  command: readonly string[],
  variables: Variables = {},
): Promise<string> {
  const options = { env: environmentOf(image), timeout: COMMAND_TIMEOUT_MS };
  return (await run("unshare", argumentsOf(image, command, variables), options)).stdout;
}

/** The image's program, serving. */
export interface ServingImage extends Addresses {
  /** Requests a stop; resolves with the exit code. */
  stop(): Promise<number | null>;
  kill(): void;
}

/** Runs the image's default command with settings, and waits until it serves. */
export async function serveImage(image: BuiltImage, variables: Variables): Promise<ServingImage> {
  const child = spawn("unshare", argumentsOf(image, [...image.entrypoint, "serve"], variables), {
    env: environmentOf(image),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit").then(([code]) => code as number | null);
  return {
    ...(await untilServing(child)),
    stop() {
      child.kill("SIGTERM");
      return exited;
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

function untilServing(child: ChildProcess): Promise<Addresses> {
  const lines: string[] = [];
  return new Promise((resolve, reject) => {
    for (const input of [child.stdout, child.stderr]) {
      if (input === null) continue;
      createInterface({ input }).on("line", (line) => {
        lines.push(line);
        if (line.includes('"serving"')) resolve(JSON.parse(line));
      });
    }
    child.once("exit", () => reject(new Error(`the image's program ended:\n${lines.join("\n")}`)));
  });
}
