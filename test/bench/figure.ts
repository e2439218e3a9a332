import type { Finding } from "./finding.ts";
import type { Pace } from "./load.ts";
import type { BenchOptions } from "./options.ts";
import type { Rig, Station } from "./rig.ts";
import type { Violations } from "./violations.ts";

/** What every figure is measured with. */
export interface Bench {
  readonly rig: Rig;
  /** The server, database and client that most figures share. */
  readonly main: Station;
  readonly options: BenchOptions;
  readonly violations: Violations;
  readonly signal: AbortSignal;
  /** How long things are measured, quick or not. */
  readonly pace: Omit<Pace, "callers">;
  /** Shows what is going on. */
  progress(what: string): void;
}

/** Measures one figure, or a few that come from one measurement. */
export type Figure = (bench: Bench) => Promise<readonly Finding[]>;

/** Short enough that the machine's drift hits both sides, long enough for hundreds of statements. */
export const FULL_PACE: Bench["pace"] = { slices: 10, sliceMs: 1200, warmUpMs: 2500 };
/** The same in less than a minute altogether: only good for seeing that the bench works, and for a first impression. */
export const QUICK_PACE: Bench["pace"] = { slices: 2, sliceMs: 150, warmUpMs: 100 };
