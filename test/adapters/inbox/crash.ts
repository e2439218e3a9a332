import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { CHILD_ENVIRONMENT } from "../../helpers/processes/child-environment.ts";

/** What a worker does, and before which step it dies. */
export interface Errand {
  /** `once` of a message, `run` with `completeIn`, or one pass of a relay. */
  readonly errand: "once" | "run" | "deliver";
  /** The caller's own database. */
  readonly databaseUrl: string;
  /** The service's. */
  readonly address: string;
  readonly apiKey: string;
  readonly key: string;
  /** What the effect is to be. */
  readonly value: string;
  readonly dieBefore: number;
}

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));
/** Long enough for any errand on a busy machine. */
const WORKER_TIMEOUT_MS = 30_000;

/** Runs a worker to its end. @returns the steps that it took, and whether it died before the next. */
export async function runWorker(
  errand: Errand,
): Promise<{ readonly steps: readonly string[]; readonly died: boolean }> {
  const child = spawn(process.execPath, ["--conditions=@onceward/source", WORKER, JSON.stringify(errand)], {
    env: CHILD_ENVIRONMENT,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: WORKER_TIMEOUT_MS,
  });
  const [[code, signal], output, errors] = await Promise.all([
    once(child, "exit"),
    text(child.stdout),
    text(child.stderr),
  ]);
  if (code !== 0 && signal !== "SIGKILL") throw new Error(`the worker failed: ${errors}`);
  return { steps: output.split("\n").slice(0, -1), died: signal === "SIGKILL" };
}
