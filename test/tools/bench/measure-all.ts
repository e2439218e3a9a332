import type { Bench, Figure } from "./figure.ts";
import { FIGURES, type FigureId, type Finding } from "./finding.ts";

/** A program that measures one or more figures. */
export interface Measurement {
  readonly of: readonly FigureId[];
  readonly figure: Figure;
}

/** What a run measured, and which figures it could not measure. */
export interface Measured {
  /** In the order of the figures. */
  readonly findings: readonly Finding[];
  /** A line for each program that failed. */
  readonly failures: readonly string[];
}

/** Measures the chosen figures. One that fails costs no other, and an interruption costs only those that were not measured yet. */
export async function measureAll(measurements: readonly Measurement[], bench: Bench): Promise<Measured> {
  const { options, signal } = bench;
  const findings: Finding[] = [];
  const failures: string[] = [];
  for (const { of, figure } of measurements) {
    if (!of.some((id) => options.only.has(id))) continue;
    try {
      signal.throwIfAborted();
      findings.push(...(await figure(bench)));
    } catch (error) {
      failures.push(`${of.join(", ")}: ${error instanceof Error ? error.message : error}`);
    }
  }
  const chosen = findings.filter((finding) => options.only.has(finding.figure));
  return { findings: chosen.sort((a, b) => FIGURES.indexOf(a.figure) - FIGURES.indexOf(b.figure)), failures };
}
