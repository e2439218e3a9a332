import { SelectField } from "../field.tsx";
import { EXPIRIES, type Expiry } from "./expiry.ts";

interface ExpiryFieldProps {
  readonly value: Expiry;
  readonly change: (expiry: Expiry) => void;
}

/** The choice of when a new key expires. */
export function ExpiryField({ value, change }: ExpiryFieldProps) {
  return (
    <SelectField label="Expires" value={value} onChange={(event) => change(event.target.value as Expiry)}>
      {Object.entries(EXPIRIES).map(([expiry, words]) => (
        <option key={expiry} value={expiry}>
          {words}
        </option>
      ))}
    </SelectField>
  );
}
