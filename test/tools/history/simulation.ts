import { createRandom, type Random } from "../../helpers/random.ts";
import type { Defect } from "./defects.ts";
import type { Answer, History, NamespacePolicy, Operation, Request } from "./operation.ts";
import { SimulatedService } from "./simulated-service.ts";

/** The parameters of a simulation; the seed decides everything else. */
export interface SimulationOptions {
  readonly seed: number;
  readonly defect?: Defect;
  readonly keys?: number;
  readonly clients?: number;
  /** Calls in all; a batch counts as one. */
  readonly calls?: number;
}

/** The result of a simulation. */
export interface Simulation {
  readonly history: History;
  /** How often the defect struck. */
  readonly struck: number;
}

const LEASE_MS = 300;
const TIMEOUT_MS = 100;
const FINGERPRINTS = ["f1", "f1", "f1", "f2", undefined];

/**
 * Simulates clients that claim, settle, lose replies and stall, against a simulated service, in simulated
 * time.
 */
export function simulate({
  seed,
  defect,
  keys = 3,
  clients = 4,
  calls = 150,
}: SimulationOptions): Simulation {
  const random = createRandom(seed);
  const policy: NamespacePolicy = {
    tenant: "acme",
    namespace: "charges",
    defaultLeaseMs: LEASE_MS,
    onLeaseExpiry: seed % 2 === 0 ? "HOLD" : "RECLAIM",
    keyRetentionMs: 8000,
    resultRetentionMs: 4000,
    failureRetentionMs: 4000,
  };
  const service = new SimulatedService(random, policy, defect);
  const simulator = new Simulator(random, service, keys, calls);
  for (let client = 0; client < clients; client++) simulator.start(`client-${client}`);
  return { history: { operations: simulator.run(), policies: [policy] }, struck: service.struck };
}

/** A client's knowledge of one key. */
interface Knowledge {
  token: number | undefined;
  /** The id of the last claim, if its outcome is unknown. */
  claimId: string | undefined;
}

interface Asked {
  readonly key: string;
  readonly request: Request;
}

class Simulator {
  readonly #random: Random;
  readonly #service: SimulatedService;
  readonly #keys: number;
  readonly #events: { readonly atMs: number; readonly happen: () => void }[] = [];
  readonly #operations: Operation[] = [];
  readonly #knowledge = new Map<string, Knowledge>();
  #nowMs = 0;
  #callsLeft: number;
  #ids = 0;

  constructor(random: Random, service: SimulatedService, keys: number, calls: number) {
    this.#random = random;
    this.#service = service;
    this.#keys = keys;
    this.#callsLeft = calls;
  }

  start(client: string): void {
    this.#later(this.#pauseMs(), () => this.#call(client));
  }

  run(): readonly Operation[] {
    // Ends: clients start no calls once the budget is used up, and each call has a bounded number of events.
    for (let next = this.#events.pop(); next !== undefined; next = this.#events.pop()) {
      this.#nowMs = next.atMs;
      next.happen();
    }
    return this.#operations;
  }

  #later(delayMs: number, happen: () => void): void {
    const event = { atMs: this.#nowMs + delayMs, happen };
    // The next event is the last.
    const index = this.#events.findLastIndex(({ atMs }) => atMs > event.atMs);
    this.#events.splice(index + 1, 0, event);
  }

  /** Sometimes a client stalls for longer than a lease, or than a result's retention. */
  #pauseMs(): number {
    const dice = this.#random.next();
    if (dice < 0.05) return this.#between(2000, 9000);
    return dice < 0.15 ? this.#between(LEASE_MS, 3 * LEASE_MS) : this.#between(0, 60);
  }

  #call(client: string): void {
    if (this.#callsLeft-- <= 0) return;
    const items = this.#random.next() < 0.15 ? 2 + this.#random.below(3) : 1;
    const key = `order-${this.#random.below(this.#keys)}`;
    const asked = Array.from({ length: items }, () => ({
      key,
      request: this.#choose(client, key, items > 1),
    }));
    const invokedAtMs = this.#nowMs;
    const fate = this.#random.next();
    const sendMs = this.#between(0.1, 8);
    if (fate < 0.04) {
      // The request never arrives.
      this.#later(TIMEOUT_MS, () => this.#giveUp(client, asked, invokedAtMs));
    } else if (fate < 0.12) {
      // The reply never arrives, or the request arrives only after the caller gave up.
      this.#later(fate < 0.08 ? sendMs : TIMEOUT_MS + this.#between(0, 400), () => this.#execute(asked));
      this.#later(TIMEOUT_MS, () => this.#giveUp(client, asked, invokedAtMs));
    } else {
      this.#later(sendMs, () => this.#answer(client, asked, invokedAtMs));
    }
  }

  #answer(client: string, asked: readonly Asked[], invokedAtMs: number): void {
    const answers = this.#execute(asked);
    const [first] = asked;
    const waitMs = first?.request.kind === "claim" ? (first.request.waitMs ?? 0) : 0;
    // Waits until the record resolves or the wait ends; then answers as if called at that moment.
    if (answers[0]?.kind === "inProgress" && this.#nowMs < invokedAtMs + waitMs) {
      this.#later(10, () => this.#answer(client, asked, invokedAtMs));
      return;
    }
    this.#later(this.#between(0.1, 8), () => {
      this.#record(client, asked, answers, invokedAtMs);
      this.start(client);
    });
  }

  #giveUp(client: string, asked: readonly Asked[], invokedAtMs: number): void {
    this.#record(
      client,
      asked,
      asked.map(() => ({ kind: "unknown", reason: "DEADLINE_EXCEEDED" })),
      invokedAtMs,
    );
    this.start(client);
  }

  #execute(asked: readonly Asked[]): Answer[] {
    if (asked.length > 1 && this.#service.strikes("swaps a batch's items")) {
      return asked
        .toReversed()
        .map((item) => this.#apply(item))
        .toReversed();
    }
    return asked.map((item) => this.#apply(item));
  }

  #apply({ key, request }: Asked): Answer {
    return this.#service.apply(key, request, this.#nowMs);
  }

  #choose(client: string, key: string, inBatch: boolean): Request {
    const known = this.#knowledgeOf(client, key);
    const dice = this.#random.next();
    if (dice < 0.08) return { kind: "lookup" };
    if (dice < 0.1) return { kind: "forget" };
    if (known.token === undefined || dice < 0.3) return this.#chooseClaim(known, inBatch);
    const { token } = known;
    if (dice < 0.45) return { kind: "release", token };
    if (dice < 0.65) return this.#chooseExtension(token);
    return { kind: "complete", token, result: { hash: `${client}/${this.#random.below(3)}` } };
  }

  #chooseExtension(token: number): Request {
    const isLonger = this.#random.next() < 0.5;
    return { kind: "extendLease", token, ...(isLonger && { leaseMs: 3 * LEASE_MS }) };
  }

  #chooseClaim(known: Knowledge, inBatch: boolean): Request {
    known.claimId ??= `call-${++this.#ids}`;
    const fingerprint = FINGERPRINTS[this.#random.below(FINGERPRINTS.length)];
    const waits = !inBatch && this.#random.next() < 0.2;
    return {
      kind: "claim",
      claimId: known.claimId,
      acceptAmbiguous: this.#random.next() < 0.3,
      ...(fingerprint !== undefined && { fingerprint }),
      ...(waits && { waitMs: 80 }),
    };
  }

  #record(client: string, asked: readonly Asked[], answers: readonly Answer[], invokedAtMs: number): void {
    const call = `c${++this.#ids}`;
    asked.forEach(({ key, request }, index) => {
      const answer = answers[index] ?? { kind: "unknown", reason: "NO_ANSWER" };
      this.#learn(client, key, request, answer);
      const name = { tenant: "acme", namespace: "charges", key };
      this.#operations.push({
        ...name,
        id: asked.length > 1 ? `${call}.${index}` : call,
        client,
        replica: "replica-1",
        request,
        answer,
        invokedAtMs,
        returnedAtMs: answer.kind === "unknown" ? Number.POSITIVE_INFINITY : this.#nowMs,
        marks: this.#service.marksOf(name, answer),
        ...(asked.length > 1 && { batch: { id: call, index } }),
      });
    });
  }

  #learn(client: string, key: string, request: Request, answer: Answer): void {
    const known = this.#knowledgeOf(client, key);
    if (request.kind === "claim" && answer.kind !== "unknown") known.claimId = undefined;
    if (answer.kind === "claimed") known.token = answer.token;
    // Sometimes a client keeps using a superseded token.
    else if (answer.kind === "refused" && this.#random.next() < 0.5) known.token = undefined;
  }

  #knowledgeOf(client: string, key: string): Knowledge {
    const name = `${client}/${key}`;
    const known = this.#knowledge.get(name) ?? { token: undefined, claimId: undefined };
    this.#knowledge.set(name, known);
    return known;
  }

  #between(from: number, to: number): number {
    return from + this.#random.next() * (to - from);
  }
}
