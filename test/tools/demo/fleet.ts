import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Ending, FromWorker, Guard, ToWorker } from "./messages.ts";
import type { Crash, Delivery } from "./operations.ts";
import type { Queue } from "./queue.ts";

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));

/** The parts of a fleet and its listeners. */
export interface FleetOptions {
  readonly size: number;
  readonly providerUrl: string;
  readonly guard: Guard | undefined;
  readonly queue: Queue;
  /** Returns where a worker that begins this delivery's effect is killed; undefined: it is not. */
  readonly crashFor: (delivery: Delivery) => Crash | undefined;
  readonly onCrash: () => void;
  readonly onEnded: (delivery: Delivery, ending: Ending) => void;
  /** Called for an error that was not planned, such as a worker that ends unexpectedly. */
  readonly onBroken: (error: Error) => void;
}

/** Worker processes that take deliveries from a queue. A killed worker is replaced. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #children = new Map<ChildProcess, Slot>();
  #stopping = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    options.queue.onAvailable = () => this.#handOut();
    for (let number = 1; number <= options.size; number++) this.#spawn(`worker-${number}`);
  }

  /** Kills every worker; resolves once all have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const exits = [...this.#children.keys()].map((child) => once(child, "exit"));
    for (const child of this.#children.keys()) child.kill("SIGKILL");
    await Promise.all(exits);
  }

  #spawn(name: string): void {
    const child = fork(WORKER, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    const slot: Slot = { name, state: { kind: "starting" } };
    this.#children.set(child, slot);
    child.on("error", (error) => this.#options.onBroken(error));
    child.on("message", (message: FromWorker) => this.#heard(child, slot, message));
    child.on("exit", (code, signal) => this.#died(child, slot, signal ?? `exit code ${code}`));
    const { providerUrl, guard } = this.#options;
    send(child, { kind: "configure", providerUrl, guard, name });
  }

  #heard(child: ChildProcess, slot: Slot, message: FromWorker): void {
    switch (message.kind) {
      case "ready":
        slot.state = { kind: "idle" };
        this.#handOut();
        break;
      case "begins effect":
        this.#decideFate(child, slot);
        break;
      case "reached point":
        if (slot.state.kind === "busy")
          setTimeout(() => child.kill("SIGKILL"), slot.state.crash?.delayMs ?? 0);
        break;
      case "ended": {
        if (slot.state.kind !== "busy") break;
        const { delivery } = slot.state;
        slot.state = { kind: "idle" };
        this.#options.onEnded(delivery, message.ending);
        this.#handOut();
        break;
      }
    }
  }

  #decideFate(child: ChildProcess, slot: Slot): void {
    if (slot.state.kind !== "busy") return;
    const crash = this.#options.crashFor(slot.state.delivery);
    slot.state = { ...slot.state, crash };
    send(child, { kind: "continue", stopAt: crash?.point });
  }

  #died(child: ChildProcess, { name, state }: Slot, how: string): void {
    this.#children.delete(child);
    if (this.#stopping) return;
    if (state.kind !== "busy" || state.crash === undefined) {
      this.#options.onBroken(new Error(`${name} ended on its own: ${how}`));
      return;
    }
    this.#options.onCrash();
    this.#options.queue.redeliver(state.delivery);
    this.#spawn(name);
  }

  #handOut(): void {
    for (const [child, slot] of this.#children) {
      if (slot.state.kind !== "idle") continue;
      const delivery = this.#options.queue.take();
      if (delivery === undefined) return;
      slot.state = { kind: "busy", delivery, crash: undefined };
      send(child, { kind: "deliver", operation: delivery.operation });
    }
  }
}

interface Slot {
  readonly name: string;
  state:
    | { readonly kind: "starting" }
    | { readonly kind: "idle" }
    | { readonly kind: "busy"; readonly delivery: Delivery; readonly crash: Crash | undefined };
}

function send(child: ChildProcess, message: ToWorker): void {
  // A worker that has just died is reported by its exit event.
  if (child.connected) child.send(message, () => {});
}
