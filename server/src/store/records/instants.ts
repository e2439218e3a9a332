/**
 * Returns the time a whole number of milliseconds after another one, exact to the microsecond as Postgres
 * computes it. The sum is computed in whole microseconds, because the rounding error of a sum of milliseconds
 * could reach one microsecond.
 */
export function laterMs(instantMs: number, byMs: number): number {
  const seconds = Math.floor(instantMs / 1000);
  const micros = Math.round((instantMs - seconds * 1000) * 1000);
  return (seconds * 1_000_000 + micros + byMs * 1000) / 1000;
}
