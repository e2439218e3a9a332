/**
 * Defects of a simulated service. Each strikes sometimes, where there is an occasion, so that a history has
 * few traces of it.
 */
export const DEFECTS = [
  "grants while a lease runs",
  "grants although completed",
  "completes with a superseded token",
  "releases with a superseded token",
  "loses a completion",
  "loses an extension",
  "loses a release",
  "replays another result",
  "starts tokens over after forgetting",
  "compares no fingerprints",
  "keeps a lease after its end",
  "answers in progress after completion",
  "swaps a batch's items",
  "forgets before retention ends",
  "replays what was forgotten long ago",
  "takes over what policy holds",
  "grants a repeated claim id again",
  "executes what it refuses",
  "shows another tenant's payload",
] as const;

/** @see DEFECTS */
export type Defect = (typeof DEFECTS)[number];
