import type { Logger } from "pino";

const INTERVAL_MS = 1000;

/**
 * Logs calls that are refused because the database did not answer: at most one line a second per cause, without a stack, with the
 * number of calls since the line before. While Postgres is away, each call of the load is refused.
 */
export class UnansweredLog {
  readonly #log: Logger;
  /** By SQLSTATE, code or name of the error, which are few. */
  readonly #byCause = new Map<string, { loggedAtMs: number; calls: number }>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Counts a call; `identity` are the fields of the call that a line names as an example. */
  note(cause: unknown, identity: Readonly<Record<string, string | undefined>>): void {
    const { message, code } = describe(cause);
    const seen = this.#byCause.get(code) ?? { loggedAtMs: Number.NEGATIVE_INFINITY, calls: 0 };
    this.#byCause.set(code, seen);
    seen.calls++;
    const nowMs = performance.now();
    if (nowMs - seen.loggedAtMs < INTERVAL_MS) return;
    this.#log.warn({ cause: message, code, calls: seen.calls, ...identity }, "the database did not answer");
    seen.loggedAtMs = nowMs;
    seen.calls = 0;
  }
}

function describe(cause: unknown): { readonly message: string; readonly code: string } {
  if (!(cause instanceof Error)) return { message: "not an Error", code: "unknown" };
  const { code = cause.name } = cause as { readonly code?: unknown };
  return { message: cause.message, code: String(code) };
}
