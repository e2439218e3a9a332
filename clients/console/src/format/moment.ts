import { parseDuration } from "./duration.ts";

const LOCAL_TIME = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d))?)?$/;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

/**
 * Returns the time that a person typed: a duration before `now` ("24h", "3 d"), a date or a time of the browser's zone
 * ("2026-11-23", "2026-11-23 18:06"), or RFC 3339. Undefined for any other text.
 */
export function parseMoment(text: string, now: Date): Date | undefined {
  const trimmed = text.trim();
  const agoMs = parseDuration(trimmed);
  if (agoMs !== undefined) return valid(new Date(now.getTime() - agoMs));
  if (RFC_3339.test(trimmed)) return valid(new Date(trimmed));
  const match = LOCAL_TIME.exec(trimmed);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1)
    .map((digits) => Number(digits ?? 0));
  const at = new Date(year, month - 1, day, hour, minute, second);
  // Date takes the 31st of February as the 3rd of March.
  const isMeant = at.getMonth() === month - 1 && at.getDate() === day && at.getHours() === hour;
  return isMeant && minute < 60 && second < 60 ? valid(at) : undefined;
}

/**
 * Returns a typed time in RFC 3339, which means the same later and in another zone. A text that is in RFC 3339, or no time,
 * is returned as it is.
 */
export function fixMoment(text: string, now: Date): string {
  return RFC_3339.test(text) ? text : (parseMoment(text, now)?.toISOString() ?? text);
}

/** Returns a time as `parseMoment` reads it, in the browser's zone and to the second: "2026-11-23 18:06:17". */
export function writeMoment(at: Date): string {
  const two = (part: number) => String(part).padStart(2, "0");
  const date = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${date} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":")}`;
}

function valid(at: Date): Date | undefined {
  return Number.isNaN(at.getTime()) || at.getFullYear() < 1970 ? undefined : at;
}
