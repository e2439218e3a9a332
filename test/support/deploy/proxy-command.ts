import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { newDir } from "../new-dir.ts";
import { CHILD_ENVIRONMENT } from "../processes/child-environment.ts";

const CLI = fileURLToPath(new URL("../../../clients/cli/src/main.ts", import.meta.url));
/** Where the image has the command line. */
const CLI_IN_IMAGE = "node clients/cli/dist/main.js";

/** A command of a container that runs `onceward http-proxy`, and what its container would have. */
interface ProxyCommand {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The texts of mounted files by their paths. */
  readonly files: Readonly<Record<string, string>>;
  /** Addresses of this machine by those of other containers. */
  readonly addresses?: Readonly<Record<string, string>>;
}

/**
 * Runs a container's command as it is, with the command line's source in place of the image's program, files in a folder of
 * its own, and free ports of the loopback address. Ends it when the test ends.
 *
 * @throws Error with what it printed if it ends before it listens.
 */
export async function startProxyCommand({ command, env = {}, files, addresses = {} }: ProxyCommand) {
  const dir = await newDir();
  const replaced = new Map([
    [CLI_IN_IMAGE, `'${process.execPath}' --conditions=@onceward/source '${CLI}'`],
    ["0.0.0.0:8090", "127.0.0.1:0"],
    ["0.0.0.0:9465", "127.0.0.1:0"],
    ...Object.entries(addresses),
  ]);
  for (const [path, text] of Object.entries(files)) {
    const file = join(dir, path.replaceAll("/", "_"));
    await writeFile(file, text);
    replaced.set(path, file);
  }
  const [program = "", ...args] = command.map((part) =>
    [...replaced].reduce((text, [found, other]) => text.replaceAll(found, other), part),
  );
  const child = spawn(program, args, {
    env: { ...CHILD_ENVIRONMENT, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  let printed = "";
  const ports = await new Promise<readonly number[]>((resolve, reject) => {
    for (const output of [child.stdout, child.stderr])
      output.on("data", (chunk) => {
        printed += chunk;
        const [, port, managementPort] =
          /guarding .* on [^ ]*:(\d+); .* on [^ ]*:(\d+)\n/.exec(printed) ?? [];
        if (port !== undefined && managementPort !== undefined)
          resolve([Number(port), Number(managementPort)]);
      });
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`ended: ${printed}`)));
  });
  const [port = 0, managementPort = 0] = ports;
  return {
    port,
    managementPort,
    /** What it has printed so far. */
    printed: () => printed,
    /** Sends SIGTERM, and returns the exit code. */
    async stop() {
      child.kill("SIGTERM");
      return await ended;
    },
  };
}
