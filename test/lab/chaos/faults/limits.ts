import { execFile } from "node:child_process";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { type Fault, last, replicaFault } from "./fault.ts";

const run = promisify(execFile);
const FEW_FILES = 48;
const MANY_SOCKETS = 100;
const SMALL_HEAP_MB = 64;

/** Faults of replicas that run out of files or memory. */
export const LIMIT_FAULTS: readonly Fault[] = [
  replicaFault(
    "replica-out-of-files",
    async (replica, scene) => {
      const { pid } = replica.process;
      const limit = (count: string) => run("prlimit", ["--pid", String(pid), `--nofile=${count}:`]);
      const { stdout } = await run("prlimit", [
        "--pid",
        String(pid),
        "--nofile",
        "--noheadings",
        "--raw",
        "-o",
        "SOFT",
      ]);
      await limit(String(FEW_FILES));
      const sockets = Array.from({ length: MANY_SOCKETS }, () => openIdle(replica.process.grpcPort));
      await last(scene, 1000, 3000);
      for (const socket of sockets) socket.destroy();
      await limit(stdout.trim());
    },
    () =>
      run("prlimit", ["--version"]).then(
        () => undefined,
        () => "prlimit is not installed",
      ),
  ),
  replicaFault("replica-small-heap", async (replica, scene) => {
    await replica.restart({ nodeOptions: [`--max-old-space-size=${SMALL_HEAP_MB}`] });
    await last(scene, 4000, 8000);
    await replica.restart();
  }),
];

function openIdle(port: number): Socket {
  return connect(port, "127.0.0.1").on("error", () => {});
}
