import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { ProviderAddress } from "../../support/providers/charge.ts";

/** The clients that have a worker. */
export const LANGUAGES = ["typescript", "python", "asyncio", "go"] as const;
export type Language = (typeof LANGUAGES)[number];

/** How all deliveries of a worker are made. */
export interface Setup {
  readonly address: string;
  readonly apiKey: string;
  readonly leaseMs: number;
  /** What SIGTERM does: it closes the client without waiting, or ends the runs for their callers. */
  readonly interruption: "close" | "cancel";
  /** After how long the worker gives up its own call to the provider. */
  readonly timeLimitMs: number;
  readonly marksBegin: boolean;
}

/** Where a delivery can tell its worker to kill itself. */
export const MOMENTS = [
  "before the claim",
  "while it looks",
  "before it begins",
  "before the call",
  "before the completion",
  "after the completion",
] as const;
export type Moment = (typeof MOMENTS)[number];

export interface Delivery {
  readonly id: number;
  readonly namespace: string;
  readonly key: string;
  readonly provider: ProviderAddress;
  readonly dieAt?: Moment | undefined;
}

/** What a delivery ended with: a charge's id, or the reason of an error; INTERRUPTED for an error that is not the client's. */
export interface Outcome {
  readonly id: number;
  /** Whether `resolve` was asked. */
  readonly looked: boolean;
  readonly value?: number;
  readonly reason?: string;
}

/** The program of a language that makes deliveries. */
export interface WorkerProgram {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A process that makes many deliveries at once. */
export class Worker {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (outcome: Outcome | undefined) => void>();
  /** Resolves once it takes deliveries, or has ended. */
  readonly ready: Promise<unknown>;
  /** Resolves once it was killed. @throws Error if it ended in another way. */
  readonly ended: Promise<void>;
  #state: "starting" | "ready" | "stalled" | "leaving" = "starting";
  #errors = "";

  constructor({ program, args, env = {} }: WorkerProgram, setup: Setup) {
    this.#process = spawn(program, [...args], { env: { ...process.env, ...env } });
    this.#process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-2000);
    });
    // The process may be killed before it reads.
    this.#process.stdin?.on("error", () => {});
    this.#process.stdin?.write(`${JSON.stringify(setup)}\n`);
    const lines = createInterface({ input: this.#process.stdout ?? process.stdin });
    this.ended = this.#end();
    this.ready = Promise.race([once(lines, "line"), this.ended]).then(() => {
      if (this.#state === "starting") this.#state = "ready";
      lines.on("line", (line) => this.#settle(JSON.parse(line)));
    });
  }

  get isStalled(): boolean {
    return this.#state === "stalled";
  }

  /** The number of deliveries that it takes now. */
  room(limit: number): number {
    return this.#state === "ready" ? limit - this.#waiting.size : 0;
  }

  /** Resolves with the outcome of a delivery; undefined if the process was killed before. */
  deliver(delivery: Delivery): Promise<Outcome | undefined> {
    this.#process.stdin?.write(`${JSON.stringify(delivery)}\n`);
    return new Promise((resolve) => this.#waiting.set(delivery.id, resolve));
  }

  /** Kills the process, or interrupts its runs: then it takes no more, and is killed once they have ended. */
  end(signal: "SIGKILL" | "SIGTERM"): void {
    this.#state = "leaving";
    this.#process.kill(this.#waiting.size === 0 ? "SIGKILL" : signal);
  }

  /** Stops the process for this time. Its deliveries end without an outcome, as for a broker that waits no longer. */
  stall(forMs: number): void {
    this.#state = "stalled";
    this.#process.kill("SIGSTOP");
    setTimeout(() => {
      if (this.#state === "stalled") this.#state = "ready";
      this.#process.kill("SIGCONT");
    }, forMs);
    for (const resolve of this.#waiting.values()) resolve(undefined);
    this.#waiting.clear();
  }

  #settle(outcome: Outcome): void {
    this.#waiting.get(outcome.id)?.(outcome);
    this.#waiting.delete(outcome.id);
    if (this.#state === "leaving" && this.#waiting.size === 0) this.#process.kill("SIGKILL");
  }

  async #end(): Promise<void> {
    // After the last line of its output.
    const [code, signal] = await once(this.#process, "close");
    this.#state = "leaving";
    for (const resolve of this.#waiting.values()) resolve(undefined);
    if (signal !== "SIGKILL") throw new Error(`a worker ended with ${signal ?? code}: ${this.#errors}`);
  }
}

const GO = fileURLToPath(new URL("../../../clients/go/", import.meta.url));
const PYTHON = fileURLToPath(new URL("../../../clients/python/", import.meta.url));

/** Returns a client's program. The one of Go is built in `dir`; ONCEWARD_PYTHON names a Python with the client's dependencies. */
export async function programOf(language: Language, dir: string): Promise<WorkerProgram> {
  switch (language) {
    case "typescript": {
      const script = fileURLToPath(new URL("deliver.ts", import.meta.url));
      const env = { NODE_COMPILE_CACHE: join(dir, "compiled") };
      return { program: process.execPath, args: ["--conditions=@onceward/source", script], env };
    }
    case "go": {
      const program = join(dir, "deliver");
      await promisify(execFile)("go", ["build", "-o", program, "./internal/deliver"], { cwd: GO });
      return { program, args: [] };
    }
    case "python":
    case "asyncio": {
      const { ONCEWARD_PYTHON: program = "python3" } = process.env;
      const args = [`${PYTHON}conformance/deliver.py`, ...(language === "asyncio" ? ["--asyncio"] : [])];
      return { program, args, env: { PYTHONPATH: `${PYTHON}src` } };
    }
  }
}
