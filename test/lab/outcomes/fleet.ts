import { setTimeout as sleep } from "node:timers/promises";
import type { ProviderAddress } from "../../support/providers/charge.ts";
import { FakeProvider } from "../../support/providers/provider.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { interruption } from "../chaos/interruption.ts";
import type { Story, StoryKind, Times } from "./judge.ts";
import { MOMENTS, type Moment, type Setup, Worker, type WorkerProgram } from "./worker.ts";

/**
 * How a worker is ended: at once, by SIGTERM, at a moment of its own, or once a provider has a request of it, or has made its charge.
 * One that is stalled continues after its leases have expired.
 */
export const ENDINGS = ["at any moment", "interrupted", "stalled", ...MOMENTS, "asked", "charged"] as const;
type Ending = (typeof ENDINGS)[number];

export interface FleetOptions extends Times {
  readonly program: WorkerProgram;
  readonly connection: Pick<Setup, "address" | "apiKey">;
  readonly kinds: readonly StoryKind[];
  readonly operations: number;
  readonly workers: number;
  readonly killEveryMs: number;
  readonly seed: number;
  /** Whether claims mark when their effect begins. */
  readonly marksBegin: boolean;
  /** That of every key, unlike those of other runs. */
  readonly prefix: string;
  readonly onProgress: (text: string) => void;
}

/** Deliveries that a worker makes at once. */
const AT_ONCE = 64;
/** The time limit of a worker's call to the provider. */
const TIME_LIMIT_MS = 1000;
/** The provider has a request for at most so long before its charge, and for at most so long after it. */
const CHARGE_MS = 10;
/** How often the provider refuses a charge, breaks the connection, and answers after the time limit. */
const FAULTS = { refuse: 0.02, break: 0.01, late: 0.002 };
/** After a delivery that got no value. */
const REDELIVER_AFTER_MS = 400;
const STALLED_AFTER_LEASE_MS = 500;
/** How often an operation is delivered twice at once, and once more after its value was there. */
const DUPLICATES = 0.1;
const PROGRESS_EVERY_MS = 5000;
/** How long after the last new operation all are to be settled, beside leases and lag. */
const DRAIN_MS = 70_000;

/** An operation that is delivered, and its messages that are not acknowledged. */
type Open = { -readonly [name in keyof Story]: Story[name] } & {
  readonly values: number[];
  readonly interruptedAtMs: number[];
  messages: number;
  isRepeated: boolean;
};

/** A broker and its workers, which are killed and interrupted: it delivers each operation again and again until it is settled. */
export class Fleet implements AsyncDisposable {
  /** How often workers were ended in each way. */
  readonly endings = new Map<Ending, number>(ENDINGS.map((ending) => [ending, 0]));
  readonly #providers = new Map<
    StoryKind,
    { readonly provider: FakeProvider; readonly address: ProviderAddress }
  >();
  readonly #options: FleetOptions;
  readonly #random: Random;
  readonly #workers = new Set<Worker>();
  /** The worker that has an operation's last delivery. */
  readonly #holders = new Map<string, Worker>();
  readonly #stories: Open[] = [];
  readonly #queue: Open[] = [];
  /** Where the next delivery or request that comes there ends its worker. */
  readonly #due = new Set<Ending>();
  readonly #finished = Promise.withResolvers<void>();
  #hired = 0;
  #deliveries = 0;
  #done = 0;
  #isOver = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#random = createRandom(options.seed);
    interruption.signal.addEventListener("abort", () => this.#finished.reject(interruption.signal.reason));
  }

  /** Delivers all operations. Returns what was seen of each. @throws Error if a worker fails. */
  async run(): Promise<readonly Story[]> {
    const { kinds, workers, operations, killEveryMs, leaseMs, lagMs, onProgress } = this.#options;
    await Promise.all(kinds.map((kind) => this.#open(kind)));
    for (let each = 0; each < workers; each++) this.#hire();
    const startedAtMs = performance.now();
    let [turns, begunAtMs] = [0, startedAtMs];
    const killing = setInterval(
      () => this.#kill(ENDINGS[turns++ % ENDINGS.length] ?? "interrupted"),
      killEveryMs,
    );
    const telling = setInterval(() => {
      const [now, begun] = [performance.now(), this.#stories.length];
      const ended = [...this.endings.values()].reduce((sum, each) => sum + each);
      const progress = `${this.#done} of ${operations} operations done, ${begun - this.#done} open, ${ended} workers ended`;
      onProgress(`${Math.round((now - startedAtMs) / 1000)} s: ${progress}`);
      if (begun < operations) begunAtMs = now;
      if (now - begunAtMs > DRAIN_MS + leaseMs + lagMs) this.#finished.resolve();
    }, PROGRESS_EVERY_MS);
    try {
      await this.#finished.promise;
    } finally {
      this.#isOver = true;
      clearInterval(killing);
      clearInterval(telling);
    }
    return this.#stories.map((story) => ({
      ...story,
      charges: this.#at(story.kind).provider.chargesOf(story.key),
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const worker of this.#workers) worker.end("SIGKILL");
    await Promise.allSettled([...this.#workers].map(({ ended }) => ended));
    for (const { provider } of this.#providers.values()) await provider[Symbol.asyncDispose]();
  }

  /** Opens the provider of a kind, where requests take time, meet faults, and end workers. */
  async #open(kind: StoryKind): Promise<void> {
    // A worker that can't find out trusts its client's defaults, to which a broken connection is an error like others.
    const breaks = kind === "no-key" || kind === "reclaim" ? 0 : FAULTS.break;
    const { lagMs } = this.#options;
    const provider = new FakeProvider(kind === "reclaim" ? "no-key" : kind, {
      lagMs,
      on: async (moment, { operation }) => {
        const holder = this.#holders.get(operation);
        if (holder !== undefined && this.#due.delete(moment)) this.#end(holder, moment);
        await sleep(this.#random.next() * CHARGE_MS);
        if (this.#random.next() < breaks) return "break";
        if (moment === "asked") return this.#random.next() < FAULTS.refuse ? "refuse" : undefined;
        if (this.#random.next() < FAULTS.late) await sleep(2 * TIME_LIMIT_MS);
        return undefined;
      },
    });
    // Who searches knows how late a worker may be that was stalled.
    const address = { kind: provider.kind, url: await provider.listen(), lagMs: lagMs + this.#stallMs };
    this.#providers.set(kind, { provider, address });
  }

  #at(kind: StoryKind) {
    const found = this.#providers.get(kind);
    if (found === undefined) throw new Error(`a provider of the kind ${kind} was not opened`);
    return found;
  }

  /** Starts a worker, and another one once it was ended. */
  #hire(): void {
    const { program, connection, leaseMs, marksBegin } = this.#options;
    const worker = new Worker(program, {
      ...{ ...connection, leaseMs, marksBegin, timeLimitMs: TIME_LIMIT_MS },
      interruption: this.#hired++ % 2 === 0 ? "close" : "cancel",
    });
    this.#workers.add(worker);
    worker.ready.then(() => this.#pump()).catch(this.#finished.reject);
    worker.ended
      .then(() => {
        this.#workers.delete(worker);
        if (!this.#isOver) this.#hire();
      })
      .catch(this.#finished.reject);
  }

  /** Longer than the rest of any lease. */
  get #stallMs(): number {
    return this.#options.leaseMs + STALLED_AFTER_LEASE_MS;
  }

  #kill(ending: Ending): void {
    if (this.#stories.length === this.#options.operations) return;
    const ready = this.#random.shuffle([...this.#workers].filter((worker) => worker.room(AT_ONCE + 1) > 0));
    // A machine that starts workers more slowly than they are ended would do nothing else.
    if (ready.length <= this.#workers.size / 2) return;
    const [worker] = ready;
    if (worker !== undefined && ending === "stalled") {
      worker.stall(this.#stallMs);
      this.#count(ending);
    } else if (worker !== undefined && (ending === "at any moment" || ending === "interrupted"))
      this.#end(worker, ending);
    else this.#due.add(ending);
  }

  #end(worker: Worker, ending: Ending): void {
    worker.end(ending === "interrupted" ? "SIGTERM" : "SIGKILL");
    this.#count(ending);
  }

  #count(ending: Ending): void {
    this.endings.set(ending, (this.endings.get(ending) ?? 0) + 1);
  }

  #pump(): void {
    for (;;) {
      const [worker] = this.#random.shuffle([...this.#workers].filter((each) => each.room(AT_ONCE) > 0));
      const story = worker && !this.#isOver ? (this.#queue.shift() ?? this.#begin()) : undefined;
      if (worker === undefined || story === undefined) return;
      this.#deliver(worker, story).catch(this.#finished.reject);
    }
  }

  /** Begins a new operation; undefined if all have begun. */
  #begin(): Open | undefined {
    const { operations, kinds, prefix, marksBegin } = this.#options;
    const number = this.#stories.length;
    if (number === operations) return undefined;
    const kind = kinds[number % kinds.length] ?? "no-key";
    const story: Open = {
      kind,
      key: `${prefix}-${number}`,
      begunAtMs: performance.now(),
      settledAtMs: undefined,
      ...{ interruptedAtMs: [], values: [], charges: [] },
      ...{ isAmbiguous: false, isRepeated: false, mayBeLate: false, messages: 1 },
      // A worker that can find out marks before its function, which is where a moment of its own can be.
      mayHaveBegun: !(marksBegin && kind === "no-key"),
    };
    this.#stories.push(story);
    if (this.#random.next() < DUPLICATES) this.#repeat(story);
    return story;
  }

  #repeat(story: Open): void {
    story.messages++;
    this.#queue.push(story);
  }

  async #deliver(worker: Worker, story: Open): Promise<void> {
    const { kind, key } = story;
    this.#holders.set(key, worker);
    const provider = this.#at(kind).address;
    const dieAt = this.#dieAt(story);
    const delivery = { id: this.#deliveries++, namespace: kind, key, provider, dieAt };
    const outcome = await worker.deliver(delivery);
    if (this.#isOver) return;
    if (worker.isStalled) story.mayBeLate = true;
    else if (outcome === undefined && dieAt !== undefined) this.#count(dieAt);
    const { value, reason, looked = false } = outcome ?? {};
    story.isAmbiguous ||= looked || reason === "AMBIGUOUS";
    if (value !== undefined) {
      story.settledAtMs ??= performance.now();
      story.values.push(value);
      if (!story.isRepeated && (story.isAmbiguous || this.#random.next() < DUPLICATES)) {
        story.isRepeated = true;
        this.#repeat(story);
      }
    }
    if (value !== undefined || (reason === "AMBIGUOUS" && kind === "no-key")) {
      story.messages--;
      if (story.messages === 0) this.#done++;
      if (this.#done === this.#options.operations) this.#finished.resolve();
    } else {
      if (reason !== "IN_PROGRESS" && reason !== "AMBIGUOUS") story.interruptedAtMs.push(performance.now());
      // A delivery that is to die before its effect never comes so far, regardless of its end.
      story.mayHaveBegun ||=
        reason !== "IN_PROGRESS" && dieAt !== "before the claim" && dieAt !== "before it begins";
      await sleep(REDELIVER_AFTER_MS);
      this.#queue.push(story);
    }
    this.#pump();
  }

  /** Returns where the delivery is to end its worker: one is due, and this delivery is likely to come there. */
  #dieAt({ isAmbiguous, values, interruptedAtMs }: Open): Moment | undefined {
    const comesTo = (moment: Moment) =>
      moment === "while it looks" ? isAmbiguous : interruptedAtMs.length === 0;
    return values.length > 0
      ? undefined
      : MOMENTS.find((moment) => comesTo(moment) && this.#due.delete(moment));
  }
}
