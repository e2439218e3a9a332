import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { Record_State, Result_Kind } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import {
  createTestingService,
  type TestingService,
} from "../../../clients/typescript/src/testing/onceward.ts";

/** What the reader of the playground chooses. */
export interface Choices {
  /** When the first worker's process dies, in seconds after its delivery; undefined if it does not. */
  readonly crashAtS: number | undefined;
  readonly leaseS: number;
  readonly onLeaseExpiry: "RECLAIM" | "HOLD";
  /** When a third delivery comes, in hours after the first; undefined if none does. */
  readonly lateAfterH: number | undefined;
  readonly lateKeys: "RUN" | "REFUSE";
}

/** Something that happened. */
export interface Event {
  /** Seconds after the first delivery. */
  readonly atS: number;
  readonly who: "first worker" | "second worker" | "late worker";
  readonly text: string;
  /** `effect` is the charge itself. */
  readonly kind: "call" | "effect" | "crash" | "refused";
  /** The record's state afterwards. */
  readonly record: "none" | "in progress" | "completed" | "ambiguous";
}

/** What happened, in order. */
export interface Story {
  readonly events: readonly Event[];
  /** How often the customer was charged. */
  readonly effects: number;
}

/** A worker charges the card 2 s after its claim, and reports the result 2 s later. */
const EFFECT_AFTER_S = 2;
const COMPLETE_AFTER_S = 4;
/** The second delivery comes while the first is being handled, and is sent again until it has an answer. */
const SECOND_DELIVERY_AT_S = 1;
const RETRY_EVERY_S = 5;
/** How long the playground's policy keeps a key, in hours. */
export const RETENTION_H = 72;
const OPERATION = { namespace: "charges", key: "order-1" };

/**
 * Plays the deliveries of one order to workers that call the service in memory of `@onceward/client/testing`, which answers as
 * the server does. Its clock is moved, so that a story of days takes no time.
 */
export async function tellStory(choices: Choices): Promise<Story> {
  const { leaseS, onLeaseExpiry, lateKeys } = choices;
  const policy = {
    defaultLeaseMs: leaseS * 1000,
    onLeaseExpiry,
    lateKeys,
    keyRetentionS: RETENTION_H * 3600,
  };
  const stage = new Stage(createTestingService({ policy, now: new Date(0) }));
  stage.deliver("first worker", 0, choices.crashAtS);
  stage.deliver("second worker", SECOND_DELIVERY_AT_S);
  if (choices.lateAfterH !== undefined) stage.deliver("late worker", choices.lateAfterH * 3600);
  await stage.play();
  return { events: stage.events, effects: stage.events.filter(({ kind }) => kind === "effect").length };
}

/** Acts that are due at some second, and what came of them. */
class Stage {
  readonly events: Event[] = [];
  readonly #service: TestingService;
  readonly #client: Client<typeof IdempotencyService>;
  readonly #acts: { readonly atS: number; readonly act: () => Promise<void> | void }[] = [];
  readonly #dead = new Set<Event["who"]>();

  constructor(service: TestingService) {
    this.#service = service;
    this.#client = createClient(IdempotencyService, service.transport);
  }

  /** Plays all acts, the earliest first. */
  async play(): Promise<void> {
    for (;;) {
      this.#acts.sort((one, other) => one.atS - other.atS);
      const next = this.#acts.shift();
      if (next === undefined) return;
      this.#service.clock.advanceTo(new Date(next.atS * 1000));
      await next.act();
    }
  }

  /** Delivers the order to a worker, whose process may die. */
  deliver(who: Event["who"], atS: number, crashAtS?: number): void {
    this.#at(atS, () => this.#claim(who));
    if (crashAtS === undefined || crashAtS >= COMPLETE_AFTER_S) return;
    this.#at(atS + crashAtS, () => {
      this.#dead.add(who);
      this.#add(who, "crash", "its process dies");
    });
  }

  async #claim(who: Event["who"]): Promise<void> {
    const request = { ...OPERATION, owner: who, keyCreatedAt: { seconds: 0n, nanos: 0 } };
    const answer = await this.#call(who, "Claim", () => this.#client.claim(request));
    if (answer === undefined) return;
    const { outcome } = answer;
    switch (outcome.case) {
      case "claimed":
        this.#add(who, "call", `Claim: claimed, attempt ${outcome.value.attempt}`);
        this.#work(who, outcome.value.fencingToken);
        break;
      case "inProgress":
        this.#add(who, "call", `Claim: in progress, held by the ${outcome.value.owner}`);
        this.#at(this.#nowS + RETRY_EVERY_S, () => this.#claim(who));
        break;
      case "completed":
        this.#add(who, "call", "Claim: completed. It returns the stored result");
        break;
      case "ambiguous":
        this.#add(who, "call", "Claim: ambiguous. A person finds out whether it happened");
    }
  }

  /** Makes a call; a refusal is told, and gives undefined. */
  async #call<Answer>(
    who: Event["who"],
    name: string,
    call: () => Promise<Answer>,
  ): Promise<Answer | undefined> {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      this.#add(who, "refused", `${name}: refused. ${error.rawMessage}`);
      return undefined;
    }
  }

  #work(who: Event["who"], fencingToken: bigint): void {
    const startS = this.#nowS;
    this.#at(startS + EFFECT_AFTER_S, () => {
      if (!this.#dead.has(who)) this.#add(who, "effect", "charges the customer's card");
    });
    this.#at(startS + COMPLETE_AFTER_S, async () => {
      if (this.#dead.has(who)) return;
      const request = { ...OPERATION, fencingToken, result: { kind: Result_Kind.SUCCESS } };
      const answer = await this.#call(who, "Complete", () => this.#client.complete(request));
      if (answer !== undefined) this.#add(who, "call", "Complete: the result is stored");
    });
  }

  #at(atS: number, act: () => Promise<void> | void): void {
    this.#acts.push({ atS, act });
  }

  get #nowS(): number {
    return this.#service.clock.nowMs / 1000;
  }

  #add(who: Event["who"], kind: Event["kind"], text: string): void {
    this.events.push({ atS: this.#nowS, who, kind, text, record: this.#recordState() });
  }

  #recordState(): Event["record"] {
    const [record] = this.#service.records();
    switch (record?.state) {
      case Record_State.IN_PROGRESS:
        return "in progress";
      case Record_State.COMPLETED:
        return "completed";
      case Record_State.AMBIGUOUS:
        return "ambiguous";
      default:
        return "none";
    }
  }
}
