/** Values that a line can stand at, the smallest first; above 0. */
export type Stops = readonly number[];

/** How many stops Page Up and Page Down move a line. */
const PAGE = 3;

/** Returns the stop that is nearest to a value by ratio, as on a logarithmic axis. */
export function nearestStop(stops: Stops, value: number): number {
  const distance = (stop: number) => Math.abs(Math.log(stop / value));
  return stops.reduce((best, stop) => (distance(stop) < distance(best) ? stop : best), stops[0] ?? value);
}

/**
 * Returns where a key moves a line that stands at `value`, which need not be a stop; undefined: the key does not move it. The
 * keys are those of ARIA's slider pattern.
 */
export function stopAfterKey(stops: Stops, value: number, key: string): number | undefined {
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
