/** The figures of a run, in the order of the table. */
export const FIGURES = [
  "P1",
  "P2",
  "P3",
  "P4",
  "P5",
  "P6",
  "P7",
  "P8",
  "P9",
  "P10",
  "P11",
  "P12",
  "P13",
  "P14",
  "P17",
  "P18",
  "P19",
  "P20",
  "P21",
  "P24",
] as const;
export type FigureId = (typeof FIGURES)[number];

/** The value that a figure has to reach. */
export type Bar = { readonly atLeast: number } | { readonly atMost: number };

/** One line of the table. */
export interface Finding {
  readonly figure: FigureId;
  /** Names one of the figure's values, such as "64"; undefined: the figure has one value. */
  readonly part?: string;
  readonly what: string;
  /** A ratio, unless `unit` says otherwise. */
  readonly value: number;
  /** `×` for a ratio. */
  readonly unit: "×" | "/s" | "ms" | "s" | "MiB";
  readonly bar?: Bar;
  /** The values that it was calculated from, each with its unit at the end of its name. */
  readonly raw: Readonly<Record<string, number>>;
}

/** Returns the finding that a ratio is: of the first two of the raw values. */
export function ratioOf(
  about: Pick<Finding, "figure" | "part" | "what" | "bar">,
  raw: Finding["raw"],
): Finding {
  const [over = Number.NaN, under = Number.NaN] = Object.values(raw);
  return { ...about, value: over / under, unit: "×", raw };
}

/** Returns whether a finding reaches its bar; undefined: it has none. */
export function meetsBar({ value, bar }: Finding): boolean | undefined {
  if (bar === undefined) return undefined;
  return "atLeast" in bar ? value >= bar.atLeast : value <= bar.atMost;
}
