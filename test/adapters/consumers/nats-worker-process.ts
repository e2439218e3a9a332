import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The settings of a worker. */
export interface NatsWorkerSettings {
  /** The address of the NATS server. */
  readonly server: string;
  readonly stream: string;
  readonly consumer: string;
  /** The subject of its effects. */
  readonly effects: string;
  readonly address: string;
  readonly apiKey: string;
  readonly dieAt: "before completion" | "before acknowledgement";
}

const WORKER = fileURLToPath(new URL("nats-worker.ts", import.meta.url));
/** Timeout of a worker that does not kill itself as set. */
const TIMEOUT_MS = 15_000;

/** Starts a worker; resolves with its exit code, or the signal that ended it. */
export async function runNatsWorker(settings: NatsWorkerSettings): Promise<unknown> {
  const child = spawn(process.execPath, ["--conditions=@onceward/source", WORKER, JSON.stringify(settings)], {
    stdio: ["ignore", "inherit", "inherit"],
    timeout: TIMEOUT_MS,
  });
  const [code, signal] = await once(child, "exit");
  return signal ?? code;
}
