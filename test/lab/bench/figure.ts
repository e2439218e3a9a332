import type { Finding } from "./finding.ts";
import type { Pace } from "./load.ts";
import type { BenchOptions } from "./options.ts";
import type { Rig, Station } from "./rig.ts";
import type { Violations } from "./violations.ts";

/** The parameters of every measurement. */
export interface Bench {
  readonly rig: Rig;
  /** The server, database and client that most figures share. */
  readonly main: Station;
  readonly options: BenchOptions;
  readonly violations: Violations;
  readonly signal: AbortSignal;
  /** Lengths and numbers of slices: full or quick. */
  readonly pace: Omit<Pace, "callers">;
  /** Prints the current step. */
  progress(what: string): void;
}

/** Measures one figure, or several that come from one measurement. */
export type Figure = (bench: Bench) => Promise<readonly Finding[]>;

/** Short enough that the machine's drift hits both sides, long enough for hundreds of statements. */
export const FULL_PACE: Bench["pace"] = { slices: 10, sliceMs: 1200, warmUpMs: 2500 };
/** All figures in less than a minute: shows that the bench works, and gives a first impression. */
export const QUICK_PACE: Bench["pace"] = { slices: 2, sliceMs: 150, warmUpMs: 100 };
