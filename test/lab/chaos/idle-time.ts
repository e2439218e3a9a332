import { cpus } from "node:os";
import { nowMs } from "../history/operation.ts";

/** When the machine had a processor left, on the clock of histories. */
export interface IdleTime {
  /** Returns for how long at least one processor was idle between two instants, in milliseconds. */
  between(fromMs: number, toMs: number): number;
}

/** An interval between two readings. */
export interface IdleSpan {
  readonly fromMs: number;
  readonly toMs: number;
  /** Of all processors together. */
  readonly idleMs: number;
}

/** @see IdleTime */
export function idleTimeOf(spans: readonly IdleSpan[]): IdleTime {
  return {
    between: (fromMs, toMs) =>
      spans.reduce((sumMs, span) => {
        const lengthMs = span.toMs - span.fromMs;
        const sharedMs = Math.min(toMs, span.toMs) - Math.max(fromMs, span.fromMs);
        return sharedMs <= 0 ? sumMs : sumMs + sharedMs * Math.min(1, span.idleMs / lengthMs);
      }, 0),
  };
}

/** The kernel counts in steps of 10 ms. */
const INTERVAL_MS = 200;

/** Reads the processors' idle time until `stop`. */
export function watchIdleTime(): { stop(): IdleTime } {
  const spans: IdleSpan[] = [];
  let last = { atMs: nowMs(), idleMs: idleMsOfAll() };
  const read = () => {
    const next = { atMs: nowMs(), idleMs: idleMsOfAll() };
    spans.push({ fromMs: last.atMs, toMs: next.atMs, idleMs: next.idleMs - last.idleMs });
    last = next;
  };
  const timer = setInterval(read, INTERVAL_MS).unref();
  return {
    stop() {
      clearInterval(timer);
      read();
      return idleTimeOf(spans);
    },
  };
}

function idleMsOfAll(): number {
  return cpus().reduce((sumMs, { times }) => sumMs + times.idle, 0);
}
