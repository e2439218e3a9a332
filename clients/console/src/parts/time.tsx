import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useSyncExternalStore } from "react";
import { SECOND_MS } from "../format/duration.ts";
import { formatAbsolute, formatRelative } from "../format/time.ts";
import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";
import { usePreference } from "./preferences.ts";

/** What depends on the present in another way than the words of a time is drawn less often. */
const TICK_MS = 10_000;

interface TimeProps {
  /** Undefined is shown as a dash. */
  readonly at: Timestamp | undefined;
  readonly form?: TimeForm;
}

/** As the person prefers, by default; where two people compare notes, both; where only the date counts, that. */
type TimeForm = "preferred" | "both" | "absolute";

/** Shows how long ago a time was or when it comes, with the exact time and its zone as a tooltip or beside it. */
export function Time({ at, form = "preferred" }: TimeProps) {
  if (at === undefined) return <span className={common.quiet}>-</span>;
  return <TimeText at={timestampDate(at)} form={form} />;
}

/** As `Time`, of a Date. */
export function TimeText({ at, form = "preferred" }: { readonly at: Date; readonly form?: TimeForm }) {
  // Drawn again only when the words change.
  const relative = useSyncExternalStore(subscribe, () => formatRelative(at, second));
  const [times] = usePreference("times");
  const exact = formatAbsolute(at);
  if (form === "preferred" && times === "relative") {
    return (
      <time dateTime={at.toISOString()} className={styles.time} title={exact}>
        {relative}
      </time>
    );
  }
  return (
    <time dateTime={at.toISOString()} className={styles.time}>
      {form === "absolute" ? exact : `${exact} `}
      {form !== "absolute" && <span className={styles.relative}>{relative}</span>}
    </time>
  );
}

/** Returns the present, to ten seconds: all times of the page change together. */
export function useNow(): Date {
  return useSyncExternalStore(subscribe, () => now);
}

let now = new Date();
/** The present to the second. */
let second = now;
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    // No time was shown until now, and none was kept up to date.
    now = new Date();
    second = now;
    timer = setInterval(tick, SECOND_MS);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function tick(): void {
  second = new Date();
  // Also after a clock that was set back.
  if (Math.abs(second.getTime() - now.getTime()) >= TICK_MS) now = second;
  for (const listener of listeners) listener();
}
