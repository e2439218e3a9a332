import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";

const DAY_MS = 24 * 3_600_000;

/** When a new key expires: after days, or never. */
export type Expiry = "30" | "90" | "365" | "never";

/** Every choice, with its words. */
export const EXPIRIES: Readonly<Record<Expiry, string>> = {
  "30": "In 30 days",
  "90": "In 90 days",
  "365": "In a year",
  never: "Never",
};

/** Returns when a key that is created at `now` expires; undefined: never. */
function expiryDate(expiry: Expiry, now: Date): Date | undefined {
  return expiry === "never" ? undefined : new Date(now.getTime() + Number(expiry) * DAY_MS);
}

/** Returns the field of a request for a key that expires as chosen. */
export function expiryField(expiry: Expiry): { readonly expiresAt?: Timestamp } {
  const at = expiryDate(expiry, new Date());
  return at === undefined ? {} : { expiresAt: timestampFromDate(at) };
}
