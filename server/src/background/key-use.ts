import type { Runner } from "../database/pool.ts";
import { storeApiKeyUse } from "../database/tenants/api-keys.ts";
import { createRepeating } from "./repeat.ts";

/** Stores which API keys are in use, to the hour. */
export type KeyUse = ReturnType<typeof createKeyUse>;

const HOUR_MS = 3_600_000;
/** As many keys as the credential cache holds; the use of more is noted in a later turn. */
const MAX_KEYS = 20_000;
const MAX_KEYS_PER_STATEMENT = 1000;

/**
 * Each replica stores each key at most once an hour, so that a key's row is written about as rarely as it is
 * worth.
 */
export function createKeyUse(options: {
  readonly runner: Runner;
  readonly intervalMs: number;
  readonly onFailed: (error: unknown) => void;
}) {
  const { runner, intervalMs, onFailed } = options;
  /** The hour of `stored`. */
  let hour = 0;
  const stored = new Set<string>();
  const noted = new Set<string>();

  async function store(): Promise<boolean> {
    const ids = [...noted].slice(0, MAX_KEYS_PER_STATEMENT);
    if (ids.length === 0) return false;
    await storeApiKeyUse(runner, ids);
    for (const id of ids) {
      noted.delete(id);
      stored.add(id);
    }
    return noted.size > 0;
  }

  return {
    ...createRepeating({ intervalMs, work: store, turnsAtStop: 1, onFailed }),
    /** Notes that a key was used. The use is stored with the next turn. */
    note(id: string): void {
      const now = Math.floor(Date.now() / HOUR_MS);
      if (now !== hour) {
        hour = now;
        stored.clear();
      }
      if (!stored.has(id) && noted.size + stored.size < MAX_KEYS) noted.add(id);
    },
  };
}
