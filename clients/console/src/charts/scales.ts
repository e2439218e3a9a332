import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../format/duration.ts";

/** Lets the Tab key reach a part of an <svg>: Preact writes `tabIndex` there as it is named, which no browser knows. */
export function makeReachable(part: SVGElement | null): void {
  part?.setAttribute("tabindex", "0");
}

/** Maps values to positions in pixels, and back. */
export interface Scale {
  readonly toPosition: (value: number) => number;
  /** Positions outside of the range give the domain's nearest end. */
  readonly toValue: (position: number) => number;
}

/** The first and the last of something: values, or positions, which may fall. */
export type Range = readonly [from: number, to: number];

/** A place to draw in, in pixels. The chart is drawn again when its width changes, so that its text keeps its size. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  /** Where axes end and the plot begins. */
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Returns the scale on which equal differences are equally far apart. */
export function linearScale([from, to]: Range, range: Range): Scale {
  const [start, end] = range;
  const width = to - from || 1;
  return {
    toPosition: (value) => start + ((value - from) / width) * (end - start),
    toValue(position) {
      const share = (position - start) / (end - start || 1);
      return from + Math.min(1, Math.max(0, share)) * (to - from);
    },
  };
}

/**
 * Returns the scale on which equal ratios are equally far apart. Values below the domain, such as 0, which has no
 * logarithm, are at its beginning.
 */
export function logScale(domain: Range, range: Range): Scale {
  const [lowest] = domain;
  if (lowest <= 0) throw new RangeError("a logarithmic scale begins above 0");
  const { toPosition, toValue } = linearScale([Math.log(lowest), Math.log(domain[1])], range);
  return {
    toPosition: (value) => toPosition(Math.log(Math.max(value, lowest))),
    toValue: (position) => Math.exp(toValue(position)),
  };
}

/** Returns the powers of ten from 1 to the first that is at least `max`. */
export function decadeTicks(max: number): readonly number[] {
  const last = Math.max(1, Math.ceil(Math.log10(Math.max(1, max))));
  return Array.from({ length: last + 1 }, (_, power) => 10 ** power);
}

/** Returns whole numbers from 0 to the first that is at least `max`, equally far apart: by 1, 2 or 5 times a power of ten. */
export function roundTicks(max: number): readonly number[] {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, max) / 4));
  const step = Math.max(1, ([1, 2, 5].find((each) => each * power * 4 >= max) ?? 10) * power);
  return Array.from({ length: Math.max(1, Math.ceil(max / step)) + 1 }, (_, index) => index * step);
}

/** Round durations, the more telling ones first: a narrow chart skips the later ones. */
const TICKS_MS = [
  ...[DAY_MS, HOUR_MS, MINUTE_MS, 7 * DAY_MS, SECOND_MS, 30 * DAY_MS, 6 * HOUR_MS, 10 * MINUTE_MS],
  ...[10 * SECOND_MS, 90 * DAY_MS, 3 * DAY_MS, 400 * DAY_MS],
];

/** Returns the round durations of a scale that are at least `apart` pixels apart, the shortest first. */
export function durationTicks([from, to]: Range, scale: Scale, apart: number): readonly number[] {
  const kept: number[] = [];
  for (const ms of TICKS_MS) {
    const isFree = kept.every((other) => Math.abs(scale.toPosition(other) - scale.toPosition(ms)) >= apart);
    if (ms >= from && ms <= to && isFree) kept.push(ms);
  }
  return kept.sort((a, b) => a - b);
}

/** How many stops Page Up and Page Down move a line. */
const PAGE = 3;

/** Returns the stop that is nearest to a value by ratio, as on a logarithmic axis. */
export function nearestStop(stops: readonly number[], value: number): number {
  const distance = (stop: number) => Math.abs(Math.log(stop / value));
  return stops.reduce((best, stop) => (distance(stop) < distance(best) ? stop : best), stops[0] ?? value);
}

/**
 * Returns where a key moves a line from `value`, which need not be a stop; undefined: the key does not move it. The
 * keys are those of ARIA's slider pattern.
 */
export function stopAfterKey(stops: readonly number[], value: number, key: string): number | undefined {
  const above = stops.filter((stop) => stop > value);
  const below = stops.filter((stop) => stop < value).reverse();
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return above[0] ?? value;
    case "ArrowLeft":
    case "ArrowDown":
      return below[0] ?? value;
    case "PageUp":
      return above[PAGE - 1] ?? above.at(-1) ?? value;
    case "PageDown":
      return below[PAGE - 1] ?? below.at(-1) ?? value;
    case "Home":
      return stops[0] ?? value;
    case "End":
      return stops.at(-1) ?? value;
    default:
      return undefined;
  }
}
