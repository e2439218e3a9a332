import type { LiveRecord, RecordId } from "../domain/record.ts";
import { recordName } from "../domain/record.ts";
import { decodeEntry, encodeEntry } from "./entry.ts";
import type { MemoryCache } from "./memory.ts";
import type { RedisCache } from "./redis.ts";
import { createRepeatMeter } from "./repeat-meter.ts";

/**
 * Completed records, close at hand. They never change but by being forgotten, and so a copy is as good as the original
 * for as long as its tenant's generation is.
 *
 * What it promises: it only ever answers *completed*; a miss grants nothing, because only Postgres grants; nothing is
 * held longer than the record's result is; and what was filled in under an earlier generation of its tenant (before a
 * record was forgotten or retention shortened) is never found, however late the filling comes.
 */
export interface Completions {
  /** Never rejects, and takes Redis' command timeout at most. */
  find(id: RecordId, generation: number): Promise<LiveRecord | undefined>;
  /** Keeps a record that a statement showed; call it after the commit, with the generation known before the statement. */
  keep(record: LiveRecord, generation: number): void;
  /** A claim that Postgres answered: with a result, or with anything else. */
  countAnswer(id: RecordId, repeat: boolean): void;
}

/** Told of every look, for the metrics. */
export type OnLook = (layer: "memory" | "redis", result: "hit" | "miss" | "invalid" | "unanswered") => void;

export interface CompletionsOptions {
  readonly memory: MemoryCache;
  /** Undefined: there is no Redis, which is a supported way to run. */
  readonly redis: RedisCache | undefined;
  /** Tells installations apart that share a Redis. */
  readonly installationId: string;
  readonly onLook: OnLook;
}

/**
 * What is left of a result's retention is counted from the statement's start on the database's clock. This much less,
 * so that neither the statement's duration nor the copy of a copy (Redis' entry in memory) outlives the retention.
 */
const MARGIN_MS = 15_000;
/** Memory's copy of Redis' copy. */
const REDIS_COPY_LIFETIME_MS = 5000;
/** Nothing is kept longer than this: what is asked for that rarely may be asked of Postgres. */
const MAX_LIFETIME_MS = 3_600_000;
/** A larger payload would push hundreds of others out. */
const MAX_PAYLOAD_BYTES = 16 * 1024;

/** @see Completions */
export function createCompletions({
  memory,
  redis,
  installationId,
  onLook,
}: CompletionsOptions): Completions {
  const meter = createRepeatMeter();
  const nameOf = (id: RecordId, generation: number) => `${installationId}:${generation}:${recordName(id)}`;

  async function findInRedis(cache: RedisCache, id: RecordId, name: string): Promise<LiveRecord | undefined> {
    const { bytes, answered } = await cache.get(name);
    if (!answered) onLook("redis", "unanswered");
    else if (bytes === undefined) onLook("redis", "miss");
    else {
      const record = decodeEntry(name, id, bytes);
      onLook("redis", record === undefined ? "invalid" : "hit");
      if (record !== undefined) memory.set(name, record, REDIS_COPY_LIFETIME_MS);
      return record;
    }
    return undefined;
  }

  return {
    async find(id, generation) {
      const name = nameOf(id, generation);
      const record = memory.get(name);
      onLook("memory", record === undefined ? "miss" : "hit");
      if (record !== undefined || redis === undefined) return record;
      if (!meter.repeatsOften(namespaceOf(id))) return undefined;
      const found = await findInRedis(redis, id, name);
      if (found !== undefined) meter.count(namespaceOf(id), true);
      return found;
    },

    keep(record, generation) {
      const { phase } = record;
      if (phase.kind !== "completed" || phase.result === undefined) return;
      if (phase.result.payload.byteLength > MAX_PAYLOAD_BYTES) return;
      const leftMs = Math.min(phase.resultExpiresAtMs, record.expiresAtMs) - record.seenAtMs - MARGIN_MS;
      if (leftMs <= 0) return;
      const lifetimeMs = Math.min(leftMs, MAX_LIFETIME_MS);
      const name = nameOf(record.id, generation);
      memory.set(name, record, lifetimeMs);
      if (redis === undefined) return;
      const bytes = encodeEntry(name, record);
      if (bytes !== undefined) redis.set(name, bytes, lifetimeMs);
    },

    countAnswer: (id, repeat) => meter.count(namespaceOf(id), repeat),
  };
}

function namespaceOf({ tenantId, namespace }: RecordId): string {
  return `${tenantId}:${namespace}`;
}
