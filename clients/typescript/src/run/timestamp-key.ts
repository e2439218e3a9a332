const EPOCH_MS = /^\d{13}$/;
const DAY_MS = 86_400_000;
/** As Date.toISOString prints a moment. One on a full second may well be meant: the run that is due at midnight. */
const ISO_MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(?!0+\D)\d+(Z|[+-]\d\d:?\d\d)$/;

/**
 * Whether a key looks as if it were made of the clock, and so anew for each delivery: the whole of it is an ISO 8601
 * moment with a fraction of a second, or the milliseconds of an hour within a day of now. Other numbers of 13 digits may
 * be somebody's ids.
 */
export function looksLikeTimestamp(key: string): boolean {
  if (EPOCH_MS.test(key)) return Math.abs(Date.now() - Number(key)) < DAY_MS;
  return ISO_MOMENT.test(key);
}
