import { randomUUID } from "node:crypto";
import pg from "pg";
import type { BenchDatabase } from "./database.ts";
import { FINGERPRINT, type Target } from "./target.ts";
import { JSON_TYPE } from "./target-onceward.ts";

/** The dedupe table of a service's own; without an index for removing old rows, in its favour. */
export const DIY_TABLE = `
create table operations (
  namespace text collate "C" not null,
  key text collate "C" not null,
  claim_id uuid not null,
  fingerprint bytea not null,
  claimed_at timestamptz not null default now(),
  completed_at timestamptz,
  content_type text,
  result bytea,
  primary key (namespace, key)
)`;

const CLAIM = {
  name: "claim",
  text: `insert into operations (namespace, key, claim_id, fingerprint) values ($1, $2, $3, $4)
         on conflict do nothing returning claim_id`,
};
const COMPLETE = {
  name: "complete",
  text: `update operations set completed_at = now(), content_type = $4, result = $5
          where namespace = $1 and key = $2 and claim_id = $3 and completed_at is null`,
};
const REPLAY = {
  name: "replay",
  text: `select fingerprint, content_type, result from operations
          where namespace = $1 and key = $2 and completed_at is not null`,
};

/** A usual size of a service's pool. */
const POOL_SIZE = 16;

/** The code that a user would write instead: node-pg, a pool of 16, prepared statements. Disposing it ends the pool. */
export function diyTarget(database: BenchDatabase): Target<string> & AsyncDisposable {
  const pool = new pg.Pool({ connectionString: database.url, max: POOL_SIZE });
  // The next query fails with the error that broke an idle connection.
  pool.on("error", () => {});
  const namespace = `ns-${randomUUID()}`;
  return {
    name: "DIY",
    async claim(key) {
      const claimId = randomUUID();
      const { rowCount } = await pool.query({ ...CLAIM, values: [namespace, key, claimId, FINGERPRINT] });
      return rowCount === 1 ? claimId : undefined;
    },
    async complete(key, claimId, payload) {
      const values = [namespace, key, claimId, JSON_TYPE, payload];
      const { rowCount } = await pool.query({ ...COMPLETE, values });
      if (rowCount !== 1) throw new Error(`${key} was not completed`);
    },
    async replay(key) {
      const { rows } = await pool.query<ReplayRow>({ ...REPLAY, values: [namespace, key] });
      return rows[0]?.fingerprint.equals(FINGERPRINT) ? rows[0].result : undefined;
    },
    async countKeys() {
      const { rows } = await pool.query<{ count: number }>(
        "select count(*)::int as count from operations where namespace = $1",
        [namespace],
      );
      return rows[0]?.count ?? 0;
    },
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

interface ReplayRow {
  readonly fingerprint: Buffer;
  readonly result: Buffer;
}
