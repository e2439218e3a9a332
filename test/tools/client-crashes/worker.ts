import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** The program of a language that makes one delivery. */
export interface WorkerProgram {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What a program delivers. */
export interface Delivery {
  readonly address: string;
  readonly apiKey: string;
  readonly namespace: string;
  readonly key: string;
  /** Where it has its effect. */
  readonly effectUrl: string;
  readonly leaseMs: number;
  readonly acceptAmbiguous: boolean;
  /** What SIGTERM does: it closes the client without waiting, or ends the run for its caller. */
  readonly interruption: "close" | "cancel";
  /** After how long the program gives up its own call to the system that has the effect. */
  readonly timeLimitMs: number;
}

/** What a delivery ended with: a value, which is the number of an effect, or the reason of an error; INTERRUPTED for any other error. */
export interface Outcome {
  readonly value: number;
  readonly replayed: boolean;
  readonly reason?: string;
}

/** Longer than a wait for another holder, and a retry of every call. */
const TIMEOUT_MS = 90_000;

/** A process that makes one delivery. */
export class Worker {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #errors = "";

  constructor({ program, args, env = {} }: WorkerProgram) {
    this.#process = spawn(program, [...args], { env: { ...process.env, ...env }, timeout: TIMEOUT_MS });
    this.#process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    // The process may be killed before it reads.
    this.#process.stdin?.on("error", () => {});
    this.#lines = createInterface({ input: this.#process.stdout ?? process.stdin })[Symbol.asyncIterator]();
  }

  /** Begins a delivery, once the process is ready for it. @throws Error if the process does not start. */
  async begin(delivery: Delivery): Promise<void> {
    const { value } = await this.#lines.next();
    if (value !== "ready") throw new Error(`a worker did not start: ${this.#errors.slice(-1000)}`);
    this.#process.stdin?.write(`${JSON.stringify(delivery)}\n`);
  }

  end(signal: "SIGKILL" | "SIGTERM"): void {
    this.#process.kill(signal);
  }

  /** Resolves with the outcome once the process has ended; undefined if a signal ended it before. @throws Error if it failed. */
  async outcome(): Promise<Outcome | undefined> {
    const { done, value } = await this.#lines.next();
    if (this.#process.exitCode === null && this.#process.signalCode === null)
      await once(this.#process, "exit");
    if (done !== true) return JSON.parse(value);
    if (this.#process.signalCode !== null) return undefined;
    throw new Error(`a worker failed: ${this.#errors.slice(-1000)}`);
  }
}
