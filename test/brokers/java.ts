import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { waitUntil } from "../../server/dev/embedded/wait.ts";
import { BROKER_JARS } from "./programs.ts";

/** Runs the program until standard input ends, which it also does when the tests are killed; then removes its directory. */
const WATCHED = 'dir=$1; shift; "$@" & read -r _; kill -9 $! 2>/dev/null; wait; rm -rf "$dir"';

const START_TIMEOUT_MS = 60_000;

/** Starts a broker from the jars; it is there once its port takes connections. Returns what stops it. */
export async function startJava(
  dir: string,
  port: number,
  args: readonly string[],
): Promise<() => Promise<void>> {
  const program = ["java", "-Xmx256m", "-cp", join(BROKER_JARS, "*"), ...args];
  const child = spawn("sh", ["-c", WATCHED, "sh", dir, ...program], { stdio: ["pipe", "ignore", "ignore"] });
  const exited = once(child, "exit");
  const stop = async () => {
    child.stdin.end();
    await exited;
  };
  if (await waitUntil(() => isOpen(port), START_TIMEOUT_MS)) return stop;
  await stop();
  throw new Error(`nothing listens on ${port}: ${args.join(" ")}`);
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
