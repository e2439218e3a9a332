import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Budget } from "./budget.ts";
import type { Effects } from "./effects.ts";
import type { Changes, Endpoint, ProbeRequest } from "./endpoint.ts";
import type { Answer, Cut } from "./exchange.ts";
import { isLater } from "./verdict.ts";

/** How often a request is repeated that is asked to come back later. */
const MAX_RETRIES = 100;
const DEFAULT_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2000;
const RESTART_MS = 60_000;

/** How requests are made, shown and sent. A dry run answers without a server. */
export interface Sender {
  /** Returns a request of a new operation, with changes. */
  request(changes?: Changes): ProbeRequest;
  /** Returns a shell command that sends the request. */
  show(request: ProbeRequest, cut?: Cut): string;
  send(request: ProbeRequest): Promise<Answer>;
  cut(request: ProbeRequest, cut: Cut): Promise<void>;
  /** Restarts the service. */
  restart(): Promise<void>;
}

/** Runs the user's command that restarts the service. @throws Error if it fails, or takes longer than a minute. */
export async function runRestart([program = "", ...args]: readonly string[] = []): Promise<void> {
  await promisify(execFile)(program, args, { timeout: RESTART_MS });
}

/** What a check works with: an endpoint, and a record of the requests that it sends. */
export class Scene {
  readonly endpoint: Endpoint;
  readonly budget: Budget;
  /** The check's requests as shell commands. */
  readonly commands: string[] = [];
  readonly #sender: Sender;
  readonly #effects: Effects;
  #before: number | undefined;

  constructor(endpoint: Endpoint, budget: Budget, sender: Sender, effects: Effects) {
    this.endpoint = endpoint;
    this.budget = budget;
    this.#sender = sender;
    this.#effects = effects;
  }

  /** Notes the number of effects before the check's first request. */
  async begin(): Promise<void> {
    this.#before = await this.#effects.count();
  }

  /** Returns a request of a new operation, with changes. */
  request(changes?: Changes): ProbeRequest {
    return this.#sender.request(changes);
  }

  async send(request: ProbeRequest): Promise<Answer> {
    const [answer] = await this.sendTogether([request]);
    return answer as Answer;
  }

  /** Sends requests at once, each on a connection of its own. */
  async sendTogether(requests: readonly ProbeRequest[]): Promise<readonly Answer[]> {
    await this.budget.request(requests.length);
    const commands = requests.map((request) => this.#sender.show(request));
    if (commands.length === 1) this.commands.push(...commands);
    else if (new Set(commands).size > 1)
      this.commands.push(`${commands.map((one) => `${one} &`).join(" ")} wait`);
    else this.commands.push(`for i in $(seq ${commands.length}); do ${commands[0]} & done; wait`);
    return await Promise.all(requests.map((request) => this.#sender.send(request)));
  }

  /** Sends a request, and again for as long as the answer asks to come back later. */
  async settle(request: ProbeRequest): Promise<Answer> {
    let answer = await this.send(request);
    for (let retry = 0; retry < MAX_RETRIES && isLater(answer); retry++) {
      const seconds = Number(answer.headers["retry-after"]);
      await this.budget.wait(Math.min(seconds > 0 ? seconds * 1000 : DEFAULT_PAUSE_MS, MAX_PAUSE_MS));
      await this.budget.request(1);
      answer = await this.#sender.send(request);
    }
    return answer;
  }

  /** Sends a request and ends the connection. */
  async sendAndCut(request: ProbeRequest, cut: Cut): Promise<void> {
    await this.budget.request(1);
    this.commands.push(this.#sender.show(request, cut));
    await this.#sender.cut(request, cut);
  }

  async restart(): Promise<void> {
    this.commands.push(this.endpoint.restartCommand?.join(" ") ?? "");
    await this.#sender.restart();
  }

  /** Waits as long as the late retry is late. */
  async wait(ms: number): Promise<void> {
    this.commands.push(`sleep ${ms / 1000}`);
    await this.budget.wait(ms);
  }

  /**
   * Returns the number of effects since the check began: counted, or inferred from the different bodies of successful answers;
   * undefined if neither is possible.
   */
  async effects(answers: readonly Answer[]): Promise<number | undefined> {
    const now = await this.#effects.count();
    if (now !== undefined && this.#before !== undefined) return now - this.#before;
    return this.#effects.infer(answers);
  }
}
