import { latenessBucket } from "../../../server/src/admin/usage/lateness.ts";
import type {
  ClaimsOfDay,
  LateOfDay,
  Observations,
} from "../../../server/src/insight/domain/observations.ts";

/** Returns a number from 0 up to, not including, 1. */
export type Random = () => number;

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** How one kind of caller repeats its claims. */
export interface Traffic {
  /** Operations per day. */
  readonly perDay: number;
  /** Returns how long after its first claim each claim of an operation comes, in milliseconds. */
  readonly repeatsOf: (random: Random) => readonly number[];
  /** The probability that a day has a redrive, and how much of the last week's operations it repeats. */
  readonly redrives?: { readonly perDay: number; readonly largestShare: number };
}

/** A repeated claim. */
export interface Repeat {
  readonly atMs: number;
  /** Since the first claim of its record, or of its key if the record had ended. */
  readonly latenessMs: number;
  readonly recognised: boolean;
}

/** A namespace's claims, and what the service saw of them. */
export interface Simulated {
  readonly observations: Observations;
  /** Every repeat, also those of keys that are not sampled. */
  readonly repeats: readonly Repeat[];
  /** Returns the claims that a service with another retention would have granted a second time. */
  readonly duplicatesWith: (retentionMs: number) => readonly { readonly atMs: number }[];
}

export interface Setting {
  readonly days: number;
  readonly retentionMs: number;
  /** The retention that is in force on a day; without it always `retentionMs`, which the first day has. */
  readonly retentionOn?: (day: number) => number;
  /** The shift of the sample on a day. */
  readonly shiftOn: (day: number) => number;
}

/** Draws a namespace's claims, and counts them as the service does. */
export function simulate(traffic: Traffic, setting: Setting, random: Random): Simulated {
  const { days } = setting;
  const redrives = drawRedrives(traffic, days, random);
  const counts = new Counts(setting);
  const repeats: Repeat[] = [];
  const histories: (readonly number[])[] = [];
  for (let operation = 0; operation < traffic.perDay * days; operation++) {
    const firstMs = random() * days * DAY_MS;
    const times = claimTimes(firstMs, traffic.repeatsOf(random), redrives, random);
    const known = times.filter((atMs) => atMs < days * DAY_MS);
    if (known.length > 1) histories.push(known);
    const hash = random();
    let startMs = firstMs;
    let returns = 0;
    counts.first(firstMs);
    for (const atMs of known.slice(1)) {
      const recognised = atMs - startMs <= retentionAt(setting, startMs);
      const latenessMs = atMs - (recognised ? startMs : firstMs);
      if (!recognised) startMs = atMs;
      repeats.push({ atMs, latenessMs, recognised });
      if (recognised) counts.recognised(atMs, latenessMs);
      else counts.late(atMs, latenessMs, hash, ++returns);
    }
  }
  return {
    observations: counts.observations(),
    repeats,
    duplicatesWith: (otherMs) => histories.flatMap((times) => duplicates(times, otherMs)),
  };
}

interface Redrive {
  readonly atMs: number;
  readonly share: number;
}

function drawRedrives({ redrives }: Traffic, days: number, random: Random): readonly Redrive[] {
  if (redrives === undefined) return [];
  const all = Array.from({ length: days }, (_, day) => ({
    happens: random() < redrives.perDay,
    atMs: (day + random()) * DAY_MS,
    share: random() * redrives.largestShare,
  }));
  return all.filter(({ happens }) => happens);
}

function claimTimes(
  firstMs: number,
  latenesses: readonly number[],
  redrives: readonly Redrive[],
  random: Random,
): readonly number[] {
  const redriven = redrives.filter(
    ({ atMs, share }) => atMs > firstMs && atMs - firstMs < 7 * DAY_MS && random() < share,
  );
  const times = [...latenesses.map((ms) => firstMs + ms), ...redriven.map(({ atMs }) => atMs)];
  return [firstMs, ...times.sort((a, b) => a - b)];
}

function duplicates(times: readonly number[], retentionMs: number): { readonly atMs: number }[] {
  let startMs = times[0] ?? 0;
  return times.slice(1).flatMap((atMs) => {
    if (atMs - startMs <= retentionMs) return [];
    startMs = atMs;
    return [{ atMs }];
  });
}

/** The counts that the service keeps. */
class Counts {
  readonly #setting: Setting;
  readonly #claims: { claims: number; firstClaims: number; repeats: Map<number, number> }[];
  readonly #late: Map<number, Map<number, { repeats: number; squares: number }>>[];

  constructor(setting: Setting) {
    this.#setting = setting;
    this.#claims = Array.from({ length: setting.days }, () => ({
      claims: 0,
      firstClaims: 0,
      repeats: new Map(),
    }));
    this.#late = this.#claims.map(() => new Map());
  }

  first(atMs: number): void {
    const day = this.#claims[dayOf(atMs)];
    if (day === undefined) return;
    day.claims++;
    day.firstClaims++;
  }

  recognised(atMs: number, latenessMs: number): void {
    const day = this.#claims[dayOf(atMs)];
    if (day === undefined) return;
    day.claims++;
    increment(day.repeats, latenessBucket(latenessMs));
  }

  late(atMs: number, latenessMs: number, hash: number, returns: number): void {
    this.first(atMs);
    const shift = this.#setting.shiftOn(dayOf(atMs));
    if (hash >= 2 ** -shift) return;
    const ofDay = this.#late[dayOf(atMs)];
    const ofShift = ofDay?.get(shift) ?? new Map<number, { repeats: number; squares: number }>();
    ofDay?.set(shift, ofShift);
    const bucket = latenessBucket(latenessMs);
    const count = ofShift.get(bucket) ?? { repeats: 0, squares: 0 };
    ofShift.set(bucket, { repeats: count.repeats + 1, squares: count.squares + 2 * returns - 1 });
  }

  observations(): Observations {
    const { days, retentionMs, shiftOn } = this.#setting;
    const retentionS = (day: number) => retentionAt(this.#setting, day * DAY_MS) / 1000;
    const claims: ClaimsOfDay[] = this.#claims.map(({ repeats, ...each }, day) => ({
      dayMs: day * DAY_MS,
      retentionS: retentionS(day),
      ...each,
      repeats: [...repeats].map(([bucket, repeats]) => ({ bucket, repeats })),
    }));
    const late: LateOfDay[] = this.#late.flatMap((shifts, day) =>
      [...shifts].map(([shift, buckets]) => ({
        dayMs: day * DAY_MS,
        retentionS: retentionS(day),
        shift,
        repeats: [...buckets].map(([bucket, count]) => ({ bucket, ...count })),
      })),
    );
    const now = { nowMs: days * DAY_MS, sinceMs: 0, sampledSinceMs: retentionMs, shift: shiftOn(days - 1) };
    return { ...now, claims, late };
  }
}

function retentionAt({ retentionMs, retentionOn }: Setting, atMs: number): number {
  return retentionOn?.(dayOf(atMs)) ?? retentionMs;
}

function dayOf(atMs: number): number {
  return Math.floor(atMs / DAY_MS);
}

function increment(counts: Map<number, number>, bucket: number): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
}

/** Retries by a program, some seconds later. */
function prompt(random: Random): readonly number[] {
  return random() < 0.05 ? [1000 - 30_000 * Math.log(1 - random())] : [];
}

/** A person who tries again after hours or days, one in 200. */
function byPeople(random: Random): readonly number[] {
  if (random() >= 0.005) return [];
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return [20 * HOUR_MS * Math.exp(1.2 * normal)];
}

/** The callers whose repeats the simulation draws. */
export const TRAFFIC: Readonly<Record<string, Traffic>> = {
  "prompt retries only": { perDay: 300, repeatsOf: prompt },
  "a mixture of programs and people": {
    perDay: 300,
    repeatsOf: (random) => [...prompt(random), ...byPeople(random)],
  },
  "redrives, about one in a week": {
    perDay: 300,
    repeatsOf: prompt,
    redrives: { perDay: 1 / 7, largestShare: 0.2 },
  },
  "redrives and a mixture": {
    perDay: 300,
    repeatsOf: (random) => [...prompt(random), ...byPeople(random)],
    redrives: { perDay: 1 / 14, largestShare: 0.5 },
  },
  // A retry with another key, or an honest second coffee, is an operation of its own: no repeat of a key.
  "keys that are made again, and look-alikes": { perDay: 400, repeatsOf: () => [] },
  "keys that are used again every 25 hours": {
    perDay: 60,
    repeatsOf: (random) => (random() < 0.02 ? [1, 2, 3, 4].map((times) => times * 25 * HOUR_MS) : []),
  },
};
