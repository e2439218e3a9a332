import { formatDuration, HOUR_MS } from "./duration.ts";

/** Differences below this are "now": the clocks of the browser and the server differ by as much. */
const NOW_MS = 2_000;

const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * Returns a time as "2026-11-23 18:06:17 UTC": 24 hours, with the zone, so that two people who compare notes read the
 * same. `zone` is an IANA name; undefined: the browser's.
 */
export function formatAbsolute(at: Date, zone?: string): string {
  const { year, month, day, hour, minute, second, timeZoneName } = partsOf(at, zone);
  return `${year}-${month}-${day} ${hour}:${minute}:${second} ${timeZoneName}`;
}

/** Returns the zone's name at a time, such as "UTC" or "GMT+1". */
export function formatZone(at: Date, zone?: string): string {
  return partsOf(at, zone).timeZoneName ?? "";
}

/** Returns the hour of a time as "11-23 18:00", in the zone of `formatAbsolute`, for axes and tables that name the zone. */
export function formatHour(at: Date, zone?: string): string {
  const { month, day, hour, minute } = partsOf(at, zone);
  return `${month}-${day} ${hour}:${minute}`;
}

/** Returns the hour that begins at a time, for what is known to the hour: "this hour", or "11-23 18:00 to 19:00, 5h ago". */
export function describeHour(begin: Date, now: Date, zone?: string): string {
  const end = new Date(begin.getTime() + HOUR_MS);
  if (now < end) return "this hour";
  const { hour, minute } = partsOf(end, zone);
  return `${formatHour(begin, zone)} to ${hour}:${minute}, ${formatRelative(end, now)}`;
}

/** Returns how far a time is from `now`, in its largest unit: "3m ago", "in 2h", "now". */
export function formatRelative(at: Date, now: Date): string {
  const differenceMs = at.getTime() - now.getTime();
  const size = Math.abs(differenceMs);
  if (size < NOW_MS) return "now";
  const [largest] = formatDuration(size).split(" ");
  return differenceMs < 0 ? `${largest} ago` : `in ${largest}`;
}

function partsOf(at: Date, zone: string | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(
    formatFor(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
}

function formatFor(zone: string | undefined): Intl.DateTimeFormat {
  const known = formats.get(zone ?? "");
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat("en-GB", {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
    timeZoneName: "short",
    ...(zone === undefined ? {} : { timeZone: zone }),
  });
  formats.set(zone ?? "", made);
  return made;
}
