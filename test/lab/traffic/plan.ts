import { createHash } from "node:crypto";
import type { Random } from "../../support/random.ts";
import { NAMESPACES, type NamespaceName } from "./namespaces.ts";

/** What is planted by a claim. */
export type Meaning =
  /** A key's first claim. */
  | "first"
  /** A repeat of a key whose record has not ended. */
  | "repeat"
  /** A repeat of a key whose record has ended. */
  | "late"
  /** A retry under a new key. */
  | "minted"
  /** Another operation that equals an earlier one. */
  | "look-alike";

/** A claim, and what its caller does once it is granted. */
export interface Operation {
  readonly namespace: NamespaceName;
  readonly key: string;
  /** The request that is fingerprinted. */
  readonly request: string;
  readonly meaning: Meaning;
  readonly owner: string;
  /** The worker dies after a checkpoint, and does not complete. */
  readonly dies: boolean;
}

/** The claims of one day. Each group follows when the one before it is finished. */
export interface DayPlan {
  readonly morning: readonly Operation[];
  /** Right after `morning`: callers that ask twice. */
  readonly atOnce: readonly Operation[];
  /** Minutes later. */
  readonly retries: readonly Operation[];
  /** Hours later. */
  readonly noon: readonly Operation[];
}

/** The day's date, which decides whether it has a redrive. */
export interface PlannedDay {
  readonly weekday: number;
  /** Operations of the day, of all namespaces. */
  readonly operations: number;
}

/** Of orders and the like. Eight digits: no Unix time. */
const FIRST_NUMBER = 10_000_000;
const MONDAY = 1;
/** On a Monday, the events of these many earlier days are redriven. */
const REDRIVEN_DAYS = 3;

/** Plans one day after the other. Each plan depends on the seed, and on what was planned before it. */
export interface Planner {
  planDay(day: PlannedDay): DayPlan;
}

/** @see Planner */
export function createPlanner(random: Random): Planner {
  return new TrafficPlanner(random);
}

class TrafficPlanner implements Planner {
  readonly #random: Random;
  #numbered = 0;
  /** The first claims of the last days, the newest day first. */
  #earlier: (readonly Operation[])[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  planDay({ weekday, operations }: PlannedDay): DayPlan {
    const planned = NAMESPACES.flatMap(({ name, share }) =>
      Array.from({ length: Math.max(1, Math.round((operations * share) / 100)) }, () => this.#first(name)),
    );
    const morning = this.#random.shuffle(planned);
    const completed = morning.filter(({ dies }) => !dies);
    const plan: DayPlan = {
      morning,
      atOnce: this.#some(completed, "payments", 0.04).map(repeated),
      retries: [
        ...this.#some(completed, "payments", 0.15).map(repeated),
        ...this.#some(completed, "webhooks", 0.005).map(repeated),
        ...this.#some(completed, "orders", 0.08).map(repeated),
        ...this.#some(completed, "emails", 0.25).map((of) => this.#again(of, "minted")),
      ],
      noon: [
        ...this.#some(completed, "orders", 0.15).map((of) => this.#again(of, "look-alike")),
        ...this.#some(this.#earlier[0] ?? [], "payments", 0.03).map(late),
        ...(weekday === MONDAY ? this.#earlier.slice(0, REDRIVEN_DAYS).flat() : [])
          .filter(({ namespace }) => namespace === "webhooks")
          .map(late),
      ],
    };
    this.#earlier = [completed, ...this.#earlier].slice(0, REDRIVEN_DAYS);
    return plan;
  }

  #first(namespace: NamespaceName): Operation {
    const number = ++this.#numbered;
    const amount = 100 + this.#random.below(99_900);
    const request = `{"number":${number},"amount":${amount}}`;
    const dies = namespace === "payouts" && this.#random.next() < 0.08;
    const owner = `${namespace}-worker-${1 + this.#random.below(4)}`;
    return { namespace, key: this.#key(namespace, number), request, meaning: "first", owner, dies };
  }

  /** Returns the same request under a new key. */
  #again(of: Operation, meaning: Meaning): Operation {
    return { ...of, key: this.#key(of.namespace, ++this.#numbered), meaning };
  }

  /** E-mails have a key that is made for each call, a UUID of version 4; other keys name what they are about. */
  #key(namespace: NamespaceName, number: number): string {
    if (namespace !== "emails") return `${namespace.slice(0, -1)}-${FIRST_NUMBER + number}`;
    const bytes = Buffer.from(Array.from({ length: 16 }, () => this.#random.below(256)));
    bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
    bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  #some(operations: readonly Operation[], namespace: NamespaceName, share: number): readonly Operation[] {
    return operations.filter((each) => each.namespace === namespace && this.#random.next() < share);
  }
}

function repeated(operation: Operation): Operation {
  return { ...operation, meaning: "repeat" };
}

function late(operation: Operation): Operation {
  return { ...operation, meaning: "late" };
}

/** Returns the fingerprint of a request: its SHA-256. */
export function fingerprintOf(request: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash("sha256").update(request).digest());
}
