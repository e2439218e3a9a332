import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { SelectField } from "../field.tsx";

const DAY_MS = 24 * 3_600_000;

/** When a new key expires: after days, or never. */
export type Expiry = "30" | "90" | "365" | "never";

const EXPIRIES: Readonly<Record<Expiry, string>> = {
  "30": "In 30 days",
  "90": "In 90 days",
  "365": "In a year",
  never: "Never",
};

/** Returns the field of a request for a key that expires as chosen. */
export function expiryField(expiry: Expiry): { readonly expiresAt?: Timestamp } {
  if (expiry === "never") return {};
  return { expiresAt: timestampFromDate(new Date(Date.now() + Number(expiry) * DAY_MS)) };
}

interface ExpiryFieldProps {
  readonly value: Expiry;
  readonly change: (expiry: Expiry) => void;
}

/** The choice of when a new key expires. */
export function ExpiryField({ value, change }: ExpiryFieldProps) {
  return (
    <SelectField
      label="Expires"
      value={value}
      options={EXPIRIES}
      onChange={(event) => change(event.target.value as Expiry)}
    />
  );
}
