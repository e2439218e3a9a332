import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Case } from "./case.ts";
import { jsonLine } from "./lines.ts";

/** How to start a client's adapter. */
export interface AdapterCommand {
  /** The column of the table, such as "typescript". */
  readonly language: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the program compiles the adapter at its first start, which is then not part of a case's time. Default: no. */
  readonly compiles?: boolean;
}

/** Longer than any case lasts, on a machine that is oversubscribed. */
const ANSWER_TIMEOUT_MS = 60_000;

/** A client's adapter: a process that reads a case as a line of JSON, and writes its outcome as a line of JSON. */
export class Adapter implements AsyncDisposable {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #errors = "";

  constructor({ program, args, env = {} }: AdapterCommand) {
    // biome-ignore lint/style/noProcessEnv: the adapter needs the PATH of this process.
    this.#process = spawn(program, [...args], { env: { ...process.env, ...env } });
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
    this.#process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    // The end of the process ends its lines, which `perform` reports.
    this.#process.on("error", (error) => {
      this.#errors += `${error}`;
    });
    this.#process.stdin.on("error", () => {});
  }

  /**
   * Performs a case. @param address that of the service which answers the case, if it has a script.
   *
   * @throws Error if the process ends, does not answer in time, or answers with something else than JSON.
   */
  async perform({ expect: _, service: __, ...given }: Case, address: string | undefined): Promise<unknown> {
    this.#process.stdin.write(jsonLine({ ...given, address }));
    const timer = setTimeout(() => {
      this.#errors += `it did not answer within ${ANSWER_TIMEOUT_MS / 1000} s`;
      this.#process.kill("SIGKILL");
    }, ANSWER_TIMEOUT_MS);
    const { done, value } = await this.#lines.next();
    clearTimeout(timer);
    if (done === true) throw new Error(`the adapter ended: ${this.#errors.trim().slice(-1000)}`);
    return JSON.parse(value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode, pid } = this.#process;
    if (exitCode !== null || signalCode !== null || pid === undefined) return;
    this.#process.stdin.end();
    await once(this.#process, "exit");
  }
}
