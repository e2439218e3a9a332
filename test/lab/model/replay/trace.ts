import { readRuns, type Simulation } from "../quint.ts";

/** "refund" is a key of a namespace that requires times and refuses late keys, "charge" of one that runs them. */
export type ModelKey = "charge" | "refund";

/** A call as the model begins it. Numbers name fingerprints, claim ids and results; 0: none. Times are minutes. */
export interface ModelCommand {
  readonly kind: "claim" | "complete" | "release" | "extend";
  readonly key: ModelKey;
  readonly token: number;
  readonly result: number;
  readonly fingerprint: number;
  readonly claimId: number;
  readonly acceptsAmbiguous: boolean;
  /** Whether a claim completes its record itself. */
  readonly completes: boolean;
  /** 0: as stored at the claim. */
  readonly retention: number;
  readonly givesBack: boolean;
  readonly marksBegin: boolean;
  readonly begins: boolean;
}

/** The model's answer to a call. */
export interface ModelAnswer {
  readonly kind: string;
  readonly token: number;
  readonly attempt: number;
  readonly result: number;
}

/** One step of a trace. */
export type ModelStep =
  | {
      readonly kind: "call";
      readonly command: ModelCommand;
      readonly answer: ModelAnswer;
      /** How many minutes before the call its key was created; undefined: the call does not say. */
      readonly keyAgeMinutes: number | undefined;
    }
  | { readonly kind: "minutes"; readonly minutes: number }
  | { readonly kind: "sweep" }
  | { readonly kind: "forget" | "release" | "complete"; readonly key: ModelKey };

/** A run of `replay.qnt`. */
export interface ModelTrace {
  readonly reclaimWithin: ReclaimWithin;
  readonly steps: readonly ModelStep[];
}

/** Retention of the namespaces' policies, and lease of every claim: RETENTION and LEASE of the specification. */
export const RETENTION_MINUTES = 5;
export const LEASE_MINUTES = 2;

/** How long after a record's first claim an expired lease is taken over, in minutes. 0: never (HOLD); the last: always. */
export const RECLAIM_WITHIN = [0, 3, 1_000_000] as const;
type ReclaimWithin = (typeof RECLAIM_WITHIN)[number];

/** Returns random traces; the seed repeats them. */
export async function readTraces(seed: number, runs: number, steps: number): Promise<readonly ModelTrace[]> {
  const simulation: Simulation = { module: "replay", init: "start", step: "go", seed, runs, steps };
  return (await readRuns(simulation)).map(readTrace);
}

interface ReplayState {
  readonly event: {
    readonly kind: ModelStep["kind"] | "start";
    readonly key: ModelKey;
    readonly minutes: number;
    readonly hasTime: boolean;
  };
  readonly reclaimWithin: ReclaimWithin;
  readonly s: { readonly answer: ModelAnswer & { readonly command: ModelCommand } };
}

function readTrace(states: readonly unknown[]): ModelTrace {
  const [first, ...rest] = states as readonly ReplayState[];
  if (first === undefined) throw new Error("a run has no state");
  return { reclaimWithin: first.reclaimWithin, steps: rest.map(readStep) };
}

function readStep({ event: { kind, key, minutes, hasTime }, s: { answer } }: ReplayState): ModelStep {
  switch (kind) {
    case "call":
      return { kind, command: answer.command, answer, keyAgeMinutes: hasTime ? minutes : undefined };
    case "minutes":
      return { kind, minutes };
    case "sweep":
      return { kind };
    case "forget":
    case "release":
    case "complete":
      return { kind, key };
    case "start":
      throw new Error("a run begins twice");
    default:
      return kind satisfies never;
  }
}
