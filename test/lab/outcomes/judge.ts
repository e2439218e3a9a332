import type { Charge, ProviderKind } from "../../support/providers/provider.ts";

/** The kind of the provider at which an operation charges, under HOLD; "reclaim" is "no-key" under RECLAIM. */
export type StoryKind = ProviderKind | "reclaim";

/** All that was seen of one operation. Times are those of `performance.now()`. */
export interface Story {
  readonly kind: StoryKind;
  readonly key: string;
  /** When it was first delivered: before its first claim. */
  readonly begunAtMs: number;
  /** When each delivery ended whose worker was killed or interrupted, or whose call to the provider failed. */
  readonly interruptedAtMs: readonly number[];
  /** Whether a delivery found that an earlier effect may have happened. */
  readonly isAmbiguous: boolean;
  /** False if every delivery that was interrupted was so before its effect began, where the claim marks that. */
  readonly mayHaveBegun: boolean;
  /** Whether a worker that was stalled had a delivery of it, and may charge after another one that took over. */
  readonly mayBeLate: boolean;
  /** What deliveries got. */
  readonly values: readonly number[];
  /** When the first of them was there; undefined if none is. */
  readonly settledAtMs: number | undefined;
  /** At the provider. */
  readonly charges: readonly Charge[];
}

/** Times by which stories are judged. */
export interface Times {
  readonly leaseMs: number;
  /** How long the search of a provider lags. */
  readonly lagMs: number;
}

/** How soon an operation is settled once its provider can tell. */
const SETTLED_WITHIN_MS = 60_000;

/** Returns how long an operation took to be settled since its provider could tell; infinite if it isn't. */
export function settledAfterMs(
  { kind, settledAtMs, begunAtMs, interruptedAtMs }: Story,
  { lagMs }: Times,
): number {
  const [knownAtMs = begunAtMs] = interruptedAtMs.slice(-1);
  return (settledAtMs ?? Number.POSITIVE_INFINITY) - knownAtMs - (kind === "search" ? lagMs : 0);
}

/** Returns whether an ambiguous operation was settled without a person in time. */
export function isSettled(story: Story, times: Times): boolean {
  return story.isAmbiguous && settledAfterMs(story, times) <= SETTLED_WITHIN_MS;
}

/** Returns whether an operation was charged twice, where this is not its policy. */
export function isChargedTwice({ kind, charges }: Story): boolean {
  return kind !== "reclaim" && charges.length > 1;
}

/** Returns the promises that a story breaks, in words. */
export function brokenPromises(story: Story, { leaseMs }: Times): readonly string[] {
  const { charges, values, begunAtMs, interruptedAtMs } = story;
  const broken: string[] = [];
  const promise = (holds: boolean, text: string) => {
    if (!holds) broken.push(text);
  };
  promise(story.isAmbiguous || values.length > 0, "it is settled, or ambiguous");
  promise(story.mayHaveBegun || !story.isAmbiguous, "a crash before the effect is not ambiguous");
  promise(!isChargedTwice(story), "it is charged once");
  promise(charges.length <= 1 + interruptedAtMs.length, "an interruption repeats it at most once");
  const inOrder = story.mayBeLate ? charges.toSorted((a, b) => a.attempt - b.attempt) : charges;
  promise(
    values.every((value) => value === inOrder.at(-1)?.id),
    "each answer is the provider's",
  );
  inOrder.slice(1).forEach((two, index) => {
    const one = inOrder[index] ?? two;
    promise(one.key === two.key, "all attempts have one derived key");
    promise(two.atMs - begunAtMs >= leaseMs, "nothing runs again before the first lease has expired");
    promise(one.attempt < two.attempt && one.fencingToken < two.fencingToken, "attempts and tokens increase");
  });
  return broken;
}
