/**
 * Returns SQL for now, by the previous clock: at the latest the time in a parameter such as `$3`, in milliseconds since the
 * Unix epoch, as DatabaseClock.latestMs, because the database's clock may have been set forward. `least` skips a null.
 */
export function nowBy(parameter: string): string {
  return `least(now(), to_timestamp(${parameter}::float8 / 1000))`;
}
