import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useSyncExternalStore } from "react";
import { formatAbsolute, formatRelative } from "../format/time.ts";
import styles from "./time.module.css";

/** Relative times are shown in whole minutes after the first one. */
const TICK_MS = 10_000;

interface TimeProps {
  /** Undefined is shown as a dash. */
  readonly at: Timestamp | undefined;
  /** Leave the relative time out, where a table has no room. */
  readonly form?: "both" | "absolute";
}

/** Shows a time: absolute with its zone, and how long ago it was or when it comes. */
export function Time({ at, form = "both" }: TimeProps) {
  if (at === undefined) return <span className={styles.none}>-</span>;
  return <TimeText at={timestampDate(at)} form={form} />;
}

/** As `Time`, of a Date. */
export function TimeText({ at, form = "both" }: { readonly at: Date; readonly form?: "both" | "absolute" }) {
  const now = useNow();
  return (
    <time dateTime={at.toISOString()} className={styles.time}>
      {formatAbsolute(at)}
      {form === "both" && <span className={styles.relative}> {formatRelative(at, now)}</span>}
    </time>
  );
}

/** Returns the present, to ten seconds: all times of the page change together. */
export function useNow(): Date {
  return useSyncExternalStore(subscribe, () => now);
}

let now = new Date();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    // No time was shown until now, and none was kept up to date.
    now = new Date();
    timer = setInterval(tick, TICK_MS);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function tick(): void {
  now = new Date();
  for (const listener of listeners) listener();
}
