import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "react";
import { parseMoment, writeMoment } from "../format/moment.ts";
import { TextField } from "./field.tsx";

interface TimeFieldProps {
  readonly label: string;
  /** The parameter of the address, which gets the time in RFC 3339. */
  readonly name: string;
  /** From `useFilters()`. */
  readonly value: string;
}

/**
 * A time in a FilterBar, typed as a duration ago or as a date. The address gets the time itself, so that a shared list is
 * the same list, and that its page tokens stay valid.
 */
export function TimeField({ label, name, value }: TimeFieldProps) {
  const [text, setText] = useState(() => shownMoment(value));
  const at = parseMoment(text, new Date());
  const problem = text.trim() === "" || at !== undefined ? undefined : "Such as 24h, or 2026-11-23 18:00.";
  return (
    <>
      <TextField
        label={label}
        problem={problem}
        placeholder="24h ago, or a date"
        value={text}
        onChange={(event) => setText(event.target.value)}
        maxLength={40}
      />
      <input type="hidden" name={name} value={at?.toISOString() ?? ""} />
    </>
  );
}

/** Returns the time of a filter, for a request; undefined without one. A malformed one in the address is skipped. */
export function timestampOf(filter: string): Timestamp | undefined {
  const at = parseMoment(filter, new Date());
  return at === undefined ? undefined : timestampFromDate(at);
}

function shownMoment(filter: string): string {
  const at = parseMoment(filter, new Date());
  return at === undefined ? filter : writeMoment(at);
}
