import { fingerprintDepth } from "../../../server/src/insight/domain/depth.ts";
import {
  countShape,
  type KeyObservations,
  noShapes,
  PROMPT_MS,
} from "../../../server/src/insight/domain/key-quality.ts";
import { keyStem } from "../../../server/src/insight/domain/key-shape.ts";
import type { Random } from "./traffic.ts";

export const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** The sample's size and age in the service. */
const MAX_SAMPLED = 8192;
const SAMPLED_DAYS = 8;
/** One first claim in as many is classified: fewer than in the service. */
const CLASSIFIED = 10;
/** When the first claims come: a Monday. */
const START_MS = Date.UTC(2026, 0, 5);

/** A claim as a caller sends it. */
export interface KeyClaim {
  readonly atMs: number;
  readonly key: string;
  /** Equal for equal requests; undefined: the claim has no fingerprint. */
  readonly fingerprint: number | undefined;
}

/** One operation that a caller wants done. */
export interface Operation {
  readonly atMs: number;
  readonly number: number;
  readonly fingerprint: number;
}

/** How one kind of caller makes keys. */
export interface KeyTraffic {
  readonly perDay: number;
  /** Returns all claims of an operation: the first one, retries, and further operations of its customer. */
  readonly claimsOf: (operation: Operation, random: Random) => readonly KeyClaim[];
  /** Different requests that customers make; undefined: no two operations have the same. */
  readonly products?: number;
}

/** Draws the claims of some days, by time. */
export function drawClaims(traffic: KeyTraffic, days: number, random: Random): readonly KeyClaim[] {
  const claims: KeyClaim[] = [];
  for (let i = 0; i < traffic.perDay * days; i++) {
    const number = 100_000 + i;
    const atMs = START_MS + Math.floor(random() * days) * DAY_MS + timeOfDayMs(random);
    const fingerprint =
      traffic.products === undefined ? number : Math.floor(traffic.products * random() ** 3);
    claims.push(...traffic.claimsOf({ atMs, number, fingerprint }, random));
  }
  return claims.sort((a, b) => a.atMs - b.atMs);
}

/** Most people order from noon to the evening. */
function timeOfDayMs(random: Random): number {
  for (;;) {
    const share = random();
    if (random() < 0.5 + 0.5 * Math.sin(2 * Math.PI * (share - 0.4))) return share * DAY_MS;
  }
}

interface Sampled {
  readonly atMs: number;
  readonly stem: string | undefined;
  readonly fingerprint: number;
  readonly depth: number;
}

/** Counts claims as the service does, a day at a time. */
export class KeyCounts {
  readonly #keys = new Set<string>();
  readonly #shapes = noShapes();
  #claims = 0;
  #repeats = 0;
  #sample: Sampled[] = [];
  #shift = 0;

  add({ atMs, key, fingerprint }: KeyClaim): void {
    this.#claims++;
    if (this.#keys.has(key)) {
      this.#repeats++;
      return;
    }
    this.#keys.add(key);
    if (this.#keys.size % CLASSIFIED === 0) countShape(this.#shapes, key, atMs, fingerprint !== undefined);
    if (fingerprint !== undefined) {
      this.#addSampled({ atMs, stem: keyStem(key), fingerprint, depth: depthOf(fingerprint) });
    }
  }

  #addSampled(sampled: Sampled): void {
    if (sampled.depth < this.#shift) return;
    this.#sample.push(sampled);
    while (this.#sample.length > MAX_SAMPLED) {
      this.#shift++;
      this.#sample = this.#sample.filter(({ depth }) => depth >= this.#shift);
    }
  }

  /** Returns what a report at the end of a day, counted from 1, is made of. */
  observations(day: number): KeyObservations {
    const nowMs = START_MS + day * DAY_MS;
    this.#sample = this.#sample.filter(({ atMs }) => atMs >= nowMs - SAMPLED_DAYS * DAY_MS);
    // All retries of the simulation come within minutes.
    return {
      claims: this.#claims,
      repeats: this.#repeats,
      promptRepeats: this.#repeats,
      late: { sum: 0, squares: 0, largest: 0, seen: 0, days: 0 },
      shapes: { ...this.#shapes },
      fingerprints: this.#gaps(nowMs),
    };
  }

  #gaps(nowMs: number): KeyObservations["fingerprints"] {
    const counts = { prompt: 0, counted: 0, later: 0, promptHours: 0, laterHours: 0 };
    for (const claims of Map.groupBy(this.#sample, ({ fingerprint }) => fingerprint).values()) {
      const found = { prompt: false, counted: false, later: false };
      claims.forEach(({ atMs, stem }, i) => {
        const next = claims[i + 1];
        const untilMs = (next?.atMs ?? nowMs) - atMs;
        counts.promptHours += Math.min(untilMs, PROMPT_MS) / HOUR_MS;
        counts.laterHours += Math.max(0, Math.min(untilMs, DAY_MS) - HOUR_MS) / HOUR_MS;
        if (next === undefined) return;
        const isCounted = stem !== undefined && stem === next.stem;
        if (untilMs <= PROMPT_MS) found[isCounted ? "counted" : "prompt"] = true;
        if (untilMs > HOUR_MS && untilMs <= DAY_MS) found.later = true;
      });
      for (const name of ["prompt", "counted", "later"] as const) if (found[name]) counts[name]++;
    }
    return { claims: this.#sample.length, ...counts };
  }
}

function depthOf(fingerprint: number): number {
  return fingerprintDepth(new Uint8Array(new Uint32Array([fingerprint]).buffer));
}

type KeyOf = (operation: Operation, random: Random) => string;

/** Retries under the same key, and equal operations of the same customer soon after, under a key of their own. */
function honest(
  keyOf: KeyOf,
  { retries, equal = 0 }: { readonly retries: number; readonly equal?: number },
): KeyTraffic["claimsOf"] {
  return (operation, random) => {
    const { atMs, fingerprint } = operation;
    const claims = [{ atMs, key: keyOf(operation, random), fingerprint }];
    if (random() < equal) {
      const second = { ...operation, atMs: atMs + delayMs(5 * MINUTE_MS, random), number: -operation.number };
      claims.push({ ...second, key: keyOf(second, random) });
    }
    return claims.flatMap((claim) =>
      random() < retries ? [claim, { ...claim, atMs: claim.atMs + delayMs(MINUTE_MS / 2, random) }] : [claim],
    );
  };
}

/** Retries under keys that are made at each attempt. */
function minted(
  keyOf: (operation: Operation, random: Random, attempt: number) => string,
  retries: number,
): KeyTraffic["claimsOf"] {
  return (operation, random) => {
    const claims: KeyClaim[] = [];
    let atMs = operation.atMs;
    do {
      const { fingerprint } = operation;
      claims.push({ atMs, key: keyOf({ ...operation, atMs }, random, claims.length + 1), fingerprint });
      atMs += delayMs(MINUTE_MS / 2, random);
    } while (random() < retries);
    return claims;
  };
}

function withoutFingerprints(claimsOf: KeyTraffic["claimsOf"]): KeyTraffic["claimsOf"] {
  return (operation, random) =>
    claimsOf(operation, random).map((claim) => ({ ...claim, fingerprint: undefined }));
}

/** Some callers of the namespace, one in `share`, make keys in another way. */
function mixed(share: number, some: KeyTraffic["claimsOf"], others: KeyTraffic["claimsOf"]) {
  return ((operation, random) =>
    (random() < share ? some : others)(operation, random)) satisfies KeyTraffic["claimsOf"];
}

function delayMs(meanMs: number, random: Random): number {
  return 1000 - meanMs * Math.log(1 - random());
}

const orderNumber: KeyOf = ({ number }) => `order-${number}`;
const uuid4: KeyOf = (_, random) =>
  `${hex(8, random)}-${hex(4, random)}-4${hex(3, random)}-8${hex(3, random)}-${hex(12, random)}`;
const uuid7: KeyOf = ({ atMs }, random) => {
  const time = Math.floor(atMs - 500 * random())
    .toString(16)
    .padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3, random)}-8${hex(3, random)}-${hex(12, random)}`;
};
const creationTime: KeyOf = ({ atMs, number }) => `order-${Math.floor(atMs)}-${number}`;
const item: KeyOf = ({ number }) => (number < 0 ? `order-${-number}:2` : `order-${number}:1`);
const dated: KeyOf = ({ atMs, number }) => `${new Date(atMs).toISOString().slice(0, 10)}-${number}`;

function hex(digits: number, random: Random): string {
  return Math.floor(random() * 16 ** digits)
    .toString(16)
    .padStart(digits, "0");
}

/** Callers whose keys are right. */
export const HONEST: Readonly<Record<string, KeyTraffic>> = {
  "numbers of orders that count": { perDay: 1000, claimsOf: honest(orderNumber, { retries: 0.02 }) },
  "3 % of orders twice within minutes": {
    perDay: 1000,
    claimsOf: honest(orderNumber, { retries: 0.02, equal: 0.03 }),
  },
  "3 % of orders twice within minutes, few retries": {
    perDay: 1000,
    claimsOf: honest(orderNumber, { retries: 0.005, equal: 0.03 }),
  },
  "300 products, at busy hours": {
    perDay: 1000,
    claimsOf: honest(orderNumber, { retries: 0.02 }),
    products: 300,
  },
  "20,000 products, hardly any retries": {
    perDay: 1000,
    claimsOf: honest(orderNumber, { retries: 0.001 }),
    products: 20_000,
  },
  "dates in keys": { perDay: 1000, claimsOf: honest(dated, { retries: 0.01 }) },
  "numbered items, 20 % of orders with two equal ones": {
    perDay: 1000,
    claimsOf: honest(item, { retries: 0.03, equal: 0.2 }),
  },
  "stored UUIDs of version 4, one retry in 1,000": {
    perDay: 1000,
    claimsOf: honest(uuid4, { retries: 0.001 }),
  },
  "stored UUIDs of version 7, made with the order": {
    perDay: 1000,
    claimsOf: honest(uuid7, { retries: 0.005 }),
  },
  "the order's time in keys": { perDay: 1000, claimsOf: honest(creationTime, { retries: 0.005 }) },
  "50 orders a day": { perDay: 50, claimsOf: honest(orderNumber, { retries: 0.02, equal: 0.03 }) },
};

/** Callers whose keys are right, and cannot be told from those with a defect. */
export const INDISTINGUISHABLE: Readonly<Record<string, KeyTraffic>> = {
  "3 % of orders twice within minutes, never a retry": {
    perDay: 1000,
    claimsOf: honest(orderNumber, { retries: 0, equal: 0.03 }),
  },
  "stored UUIDs of version 4, never a retry": { perDay: 1000, claimsOf: honest(uuid4, { retries: 0 }) },
};

/** Callers with a defect, and the finding that names it. */
export const DEFECTS: Readonly<Record<string, KeyTraffic & { readonly kind: string }>> = {
  "a new UUID for each of 5 % retries": {
    kind: "newKeyPerRetry",
    perDay: 1000,
    claimsOf: minted(uuid4, 0.05),
  },
  "a new UUID for each of 1 % retries": {
    kind: "newKeyPerRetry",
    perDay: 1000,
    claimsOf: minted(uuid4, 0.01),
  },
  "the same, one caller in 5, the others without retries": {
    kind: "newKeyPerRetry",
    perDay: 1000,
    claimsOf: mixed(0.2, minted(uuid4, 0.05), honest(orderNumber, { retries: 0 })),
  },
  "the same, one caller in 5, the others with 1 % retries": {
    kind: "newKeyPerRetry",
    perDay: 1000,
    claimsOf: mixed(0.2, minted(uuid4, 0.05), honest(orderNumber, { retries: 0.01 })),
  },
  "the time of the attempt": {
    kind: "timeInKey",
    perDay: 1000,
    claimsOf: minted(({ atMs }) => `charge-${Math.floor(atMs)}`, 0.02),
  },
  "the number of the attempt": {
    kind: "attemptInKey",
    perDay: 1000,
    claimsOf: minted(({ number }, _, attempt) => `order-${number}:${attempt}`, 0.02),
  },
  "the number of the attempt, without fingerprints": {
    kind: "attemptInKey",
    perDay: 1000,
    claimsOf: withoutFingerprints(
      minted(({ number }, _, attempt) => `order-${number}${attempt > 1 ? `-retry-${attempt}` : ""}`, 0.02),
    ),
  },
  "a UUID of version 4 per claim": { kind: "uuidPerClaim", perDay: 1000, claimsOf: minted(uuid4, 0.02) },
  "a UUID of version 7 per claim, without fingerprints": {
    kind: "uuidPerClaim",
    perDay: 1000,
    claimsOf: withoutFingerprints(minted(uuid7, 0.02)),
  },
  "no fingerprints": {
    kind: "noFingerprints",
    perDay: 1000,
    claimsOf: withoutFingerprints(honest(orderNumber, { retries: 0.02 })),
  },
};
