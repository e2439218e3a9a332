import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The settings of a worker. */
export interface WorkerSettings {
  readonly url: string;
  readonly queue: string;
  /** The queue of its effects. */
  readonly effects: string;
  readonly address: string;
  readonly apiKey: string;
  readonly dieAt: "before completion" | "before acknowledgement";
}

const WORKER = fileURLToPath(new URL("rabbitmq-worker.ts", import.meta.url));
/** Timeout of a worker that does not kill itself as set. */
const TIMEOUT_MS = 15_000;

/** Starts a worker; `exited` resolves with its exit code, or the signal that ended it. */
export function startRabbitMqWorker(settings: WorkerSettings): { exited: Promise<unknown> } {
  const child = spawn(process.execPath, ["--conditions=@onceward/source", WORKER, JSON.stringify(settings)], {
    stdio: ["ignore", "inherit", "inherit"],
    timeout: TIMEOUT_MS,
  });
  return { exited: once(child, "exit").then(([code, signal]) => signal ?? code) };
}
