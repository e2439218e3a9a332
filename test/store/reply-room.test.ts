import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MAX_MESSAGE_BYTES } from "../../server/src/domain/limits.ts";
import { Rejected, type Settled } from "../../server/src/domain/operation.ts";
import type { LiveRecord, Result } from "../../server/src/domain/record.ts";
import { UNLIMITED } from "../../server/src/store/batching/fair-queue.ts";
import { openPool, type Pool } from "../../server/src/store/pool.ts";
import { createRecordStore, type RecordStore } from "../../server/src/store/records/record-store.ts";
import { claimCommand } from "../helpers/calls/domain.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database/database.ts";

const NO_DEADLINE = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
const LARGE = { namespace: "large", count: 40, bytes: 1024 * 1024 };
/** The largest payloads that are read with their records. */
const INLINE = { namespace: "inline", count: 200, bytes: 64 * 1024 };

let database: TestDatabase;
let pool: Pool;
let store: RecordStore;
/** The payloads that statements returned for reads of large payloads. */
let bytesRead = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  for (const { namespace, count, bytes } of [LARGE, INLINE]) {
    await database.query(
      `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
         accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
         claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner, settled_at, result_expires_at,
         result_kind, result_digest, result_payload, fingerprint)
       select 1, $1, 'key-' || n, 1, 2, 1, false, false, 30000, 3600, 3600, 3600, now(), now(), now(),
              now() + interval '1 hour', now() + interval '1 hour', '', '', now(), now() + interval '1 hour',
              1, '\\x00', convert_to(repeat('x', $3::int), 'utf8'), decode(repeat('00', 32), 'hex')
         from generate_series(1, $2::int) n`,
      [namespace, count, bytes],
    );
  }
  pool = openPool({ databaseUrl: database.url, size: 4, throughPgBouncer: false });
  store = createRecordStore(
    {
      ...pool,
      async run<Row extends Record<string, unknown>>(...run: Parameters<Pool["run"]>) {
        const rows = await pool.run<Row>(...run);
        if (run[0].name === "read_payloads")
          for (const { result_payload: payload } of rows) bytesRead += (payload as Buffer).byteLength;
        return rows;
      },
    },
    UNLIMITED,
  );
});

afterAll(async () => {
  await pool?.close();
  await database?.drop();
});

beforeEach(() => {
  bytesRead = 0;
});

function idsOf({ namespace, count }: typeof LARGE) {
  return Array.from({ length: count }, (_, n) => ({ tenantId: 1, namespace, key: `key-${n + 1}` }));
}

/** Returns the number of results, and the reasons of the refusals. */
function tally(results: readonly Settled<Result | undefined>[], bytes: number) {
  const came = results.filter(
    (result) => !(result instanceof Rejected) && result?.payload.byteLength === bytes,
  );
  const refused = results.flatMap((result) =>
    result instanceof Rejected ? [(result.error as { reason?: string }).reason] : [],
  );
  return { came: came.length, refused: refused.length, reasons: [...new Set(refused)] };
}

function resultOf(record: Settled<LiveRecord | undefined>): Settled<Result | undefined> {
  if (record instanceof Rejected) return record;
  return record?.phase.kind === "completed" ? record.phase.result : undefined;
}

test.each([LARGE, INLINE])(
  "reads of $count results of $bytes bytes hold a reply's worth of them",
  async (of) => {
    const records = await store.read(idsOf(of), NO_DEADLINE);
    const fitting = MAX_MESSAGE_BYTES / of.bytes;
    expect(tally(records.map(resultOf), of.bytes)).toEqual({
      came: fitting,
      refused: of.count - fitting,
      reasons: ["RESPONSE_TOO_LARGE"],
    });
    expect(bytesRead).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
  },
);

test.each([LARGE, INLINE])(
  "claims of $count results of $bytes bytes hold a reply's worth of them",
  async (of) => {
    const outcomes = await store.claim(
      idsOf(of).map((id) => claimCommand({ id })),
      NO_DEADLINE,
    );
    const results = outcomes.map((outcome) =>
      outcome instanceof Rejected || outcome.kind !== "completed" ? (outcome as Rejected) : outcome.result,
    );
    const fitting = MAX_MESSAGE_BYTES / of.bytes;
    expect(tally(results, of.bytes)).toEqual({
      came: fitting,
      refused: of.count - fitting,
      reasons: ["RESPONSE_TOO_LARGE"],
    });
    expect(bytesRead).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
  },
);

test.each([LARGE, INLINE])(
  "a claim with another fingerprint is told so, however full the reply is",
  async (of) => {
    const fingerprint = Buffer.alloc(32, 1);
    const outcomes = await store.claim(
      idsOf(of).map((id) => claimCommand({ id, fingerprint })),
      NO_DEADLINE,
    );
    const reasons = outcomes.map((outcome) => outcome instanceof Rejected && outcome.error);
    expect(reasons).toEqual(reasons.map(() => expect.objectContaining({ reason: "FINGERPRINT_MISMATCH" })));
    expect(bytesRead).toBe(0);
  },
);
