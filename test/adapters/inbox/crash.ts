import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";

/** The task of a worker, and the step before which it kills itself. */
export interface Errand {
  /** `once` for a message, `run` with `completeIn`, or one pass of a relay. */
  readonly errand: "once" | "run" | "deliver";
  readonly databaseUrl: string;
  readonly address: string;
  readonly apiKey: string;
  readonly key: string;
  readonly value: string;
  readonly dieBefore: number;
}

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));
/** Maximum time of a worker, on a busy machine too. */
const WORKER_TIMEOUT_MS = 30_000;

/** Runs a worker to its end. @returns its steps, and whether it was killed before the next one. */
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
