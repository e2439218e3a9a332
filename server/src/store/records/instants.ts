/**
 * The instant so many whole milliseconds after another, to the microsecond as Postgres reckons it. Microseconds are whole
 * numbers here: in a sum of milliseconds, what the fraction was rounded by could grow to one.
 */
export function laterMs(instantMs: number, byMs: number): number {
  const seconds = Math.floor(instantMs / 1000);
  const micros = Math.round((instantMs - seconds * 1000) * 1000);
  return (seconds * 1_000_000 + micros + byMs * 1000) / 1000;
}
