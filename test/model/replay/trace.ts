import { readRuns, type Simulation } from "../quint.ts";

/** A call as the model begins it. Numbers name fingerprints, claim ids and results; 0: none. Times are minutes. */
export interface ModelCommand {
  readonly kind: "claim" | "complete" | "release" | "extend";
  readonly token: number;
  readonly result: number;
  readonly fingerprint: number;
  readonly claimId: number;
  readonly acceptsAmbiguous: boolean;
  /** 0: as stored at the claim. */
  readonly retention: number;
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
  | { readonly kind: "call"; readonly command: ModelCommand; readonly answer: ModelAnswer }
  | { readonly kind: "minutes"; readonly minutes: number }
  | { readonly kind: "sweep" | "forget" | "release" | "complete" };

/** A run of `replay.qnt`. */
export interface ModelTrace {
  readonly holds: boolean;
  readonly steps: readonly ModelStep[];
}

/** Retention of the namespace's policy, and lease of every claim: RETENTION and LEASE of the specification. */
export const RETENTION_MINUTES = 5;
export const LEASE_MINUTES = 2;

/** Returns random traces; the seed repeats them. */
export async function readTraces(seed: number, runs: number, steps: number): Promise<readonly ModelTrace[]> {
  const simulation: Simulation = { module: "replay", init: "start", step: "go", seed, runs, steps };
  return (await readRuns(simulation)).map(readTrace);
}

interface ReplayState {
  readonly event: { readonly kind: ModelStep["kind"] | "start"; readonly minutes: number };
  readonly holds: boolean;
  readonly s: { readonly answer: ModelAnswer & { readonly command: ModelCommand } };
}

function readTrace(states: readonly unknown[]): ModelTrace {
  const [first, ...rest] = states as readonly ReplayState[];
  if (first === undefined) throw new Error("a run has no state");
  return { holds: first.holds, steps: rest.map(readStep) };
}

function readStep({ event: { kind, minutes }, s: { answer } }: ReplayState): ModelStep {
  switch (kind) {
    case "call":
      return { kind, command: answer.command, answer };
    case "minutes":
      return { kind, minutes };
    case "sweep":
    case "forget":
    case "release":
    case "complete":
      return { kind };
    case "start":
      throw new Error("a run begins twice");
    default:
      return kind satisfies never;
  }
}
