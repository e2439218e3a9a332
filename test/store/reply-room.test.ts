import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Pool } from "../../server/src/database/pool.ts";
import { MAX_MESSAGE_BYTES } from "../../server/src/domain/limits.ts";
import { Rejected, type Settled } from "../../server/src/domain/operation.ts";
import { UNLIMITED } from "../../server/src/records/engine/fair-queue.ts";
import type { LiveRecord, Result } from "../../server/src/records/record.ts";
import { createRecordStore, type RecordStore } from "../../server/src/records/record-store.ts";
import { claimCommand } from "../support/calls/domain.ts";
import { usePool } from "../support/database/connections.ts";
import { useDatabase } from "../support/database/use-database.ts";

const NO_DEADLINE = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
const LARGE = { namespace: "large", count: 40, bytes: 1024 * 1024, metadataBytes: 0 };
/** The largest results that are read with their records. */
const INLINE = { namespace: "inline", count: 200, bytes: 64 * 1024, metadataBytes: 0 };
/** Results with more metadata than a call may store. */
const METADATA = { namespace: "metadata", count: 40, bytes: 0, metadataBytes: 256 * 1024 };
/** The most metadata of today, with a payload: they are read with their records, too. */
const BOTH = { namespace: "both", count: 200, bytes: 48 * 1024, metadataBytes: 16 * 1024 };
const ALL = [LARGE, INLINE, METADATA, BOTH];

const database = useDatabase();
const pool = usePool(database, 4);
let store: RecordStore;
/** Bytes of the parameters of each statement that stores a value. */
let bytesWritten: number[] = [];
/** Bytes of results that statements returned: for reads of large results, and with records. */
let bytesRead = 0;
let bytesReadWithRecords = 0;

beforeAll(async () => {
  for (const { namespace, count, bytes, metadataBytes } of ALL) {
    await database.query(
      `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
         accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
         claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner, settled_at, result_expires_at,
         result_kind, result_digest, result_payload, result_metadata, fingerprint)
       select 1, $1, 'key-' || n, 1, 2, 1, false, false, 30000, 3600, 3600, 3600, now(), now(), now(),
              now() + interval '1 hour', now() + interval '1 hour', '', '', now(), now() + interval '1 hour',
              1, '\\x00', convert_to(repeat('x', $3::int), 'utf8'),
              case when $4::int > 0 then '{"a":"' || repeat('x', $4::int - 8) || '"}' end, decode(repeat('00', 32), 'hex')
         from generate_series(1, $2::int) n`,
      [namespace, count, bytes, metadataBytes],
    );
  }
  store = createRecordStore(
    {
      ...pool,
      async run<Row extends Record<string, unknown>>(...run: Parameters<Pool["run"]>) {
        if (/^(complete_records|extend_leases)$/.test(run[0].name)) bytesWritten.push(parameterBytes(run[1]));
        const rows = await pool.run<Row>(...run);
        const bytes = resultBytesOf(rows);
        if (run[0].name === "read_payloads") bytesRead += bytes;
        if (run[0].name === "read_records") bytesReadWithRecords += bytes;
        return rows;
      },
    },
    UNLIMITED,
  );
});

beforeEach(() => {
  bytesWritten = [];
  bytesRead = 0;
  bytesReadWithRecords = 0;
});

function parameterBytes(parameters: readonly unknown[]): number {
  return parameters.reduce<number>((bytes, each) => bytes + (Buffer.isBuffer(each) ? each.byteLength : 0), 0);
}

function resultBytesOf(rows: readonly Readonly<Record<string, unknown>>[]): number {
  let bytes = 0;
  for (const { result_payload: payload, result_metadata: metadata } of rows)
    bytes += ((payload as Buffer | null)?.byteLength ?? 0) + ((metadata as string | null)?.length ?? 0);
  return bytes;
}

/** Returns the bytes of the results that are read with their records: of at most 64 KiB. */
function bytesWithRecords({ count, bytes, metadataBytes }: typeof LARGE): number {
  return bytes + metadataBytes > 64 * 1024 ? 0 : count * (bytes + metadataBytes);
}

function idsOf({ namespace, count }: typeof LARGE) {
  return Array.from({ length: count }, (_, n) => ({ tenantId: 1, namespace, key: `key-${n + 1}` }));
}

/** Returns the number of results, and the reasons of the refusals. */
function tally(results: readonly Settled<Result | undefined>[], { bytes, metadataBytes }: typeof LARGE) {
  const came = results.filter(
    (result) =>
      !(result instanceof Rejected) &&
      result?.payload.byteLength === bytes &&
      result.metadataJson.length === metadataBytes,
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

/** The operations that return results of records. */
const OPERATIONS = {
  async reads(of: typeof LARGE) {
    return (await store.read(idsOf(of), NO_DEADLINE)).map(resultOf);
  },
  async claims(of: typeof LARGE) {
    const commands = idsOf(of).map((id) => claimCommand({ id }));
    return (await store.claim(commands, NO_DEADLINE)).map((outcome) =>
      outcome instanceof Rejected || outcome.kind !== "completed" ? (outcome as Rejected) : outcome.result,
    );
  },
};

describe.each(["reads", "claims"] as const)("%s", (operation) => {
  test.each(ALL)("of $count results of $bytes and $metadataBytes bytes hold a reply's worth", async (of) => {
    const results = await OPERATIONS[operation](of);
    const fitting = MAX_MESSAGE_BYTES / (of.bytes + of.metadataBytes);
    expect(tally(results, of)).toEqual({
      came: fitting,
      refused: of.count - fitting,
      reasons: ["RESPONSE_TOO_LARGE"],
    });
    expect(bytesRead).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
    expect(bytesReadWithRecords).toBe(bytesWithRecords(of));
  });
});

test.each(ALL)("a claim with another fingerprint is told so, however full the reply is", async (of) => {
  const fingerprint = Buffer.alloc(32, 1);
  const outcomes = await store.claim(
    idsOf(of).map((id) => claimCommand({ id, fingerprint })),
    NO_DEADLINE,
  );
  const reasons = outcomes.map((outcome) => outcome instanceof Rejected && outcome.error);
  expect(reasons).toEqual(reasons.map(() => expect.objectContaining({ reason: "FINGERPRINT_MISMATCH" })));
  expect(bytesRead).toBe(0);
});

describe("a statement holds at most 4 MiB, with the last of its values a little more", () => {
  const PIECE_BYTES = 256 * 1024;
  const payload = Buffer.alloc(PIECE_BYTES);
  const metadataJson = `{"a":"${"x".repeat(PIECE_BYTES - 8)}"}`;
  const claim = { fencingToken: 1n, keyRetentionS: undefined, leaseMs: undefined };
  const result: Result = { kind: "success", contentType: "", payload, metadataJson };
  const ids = idsOf({ ...LARGE, namespace: "unknown" });

  test("of completions with payloads and metadata", async () => {
    await store.complete(
      ids.map((id) => ({ ...claim, id, result, resultDigest: Buffer.alloc(32) })),
      NO_DEADLINE,
    );
    expectBounded(2 * PIECE_BYTES);
  });

  test("of checkpoints", async () => {
    const checkpoint = { name: "page", state: payload };
    await store.extendLease(
      ids.map((id) => ({ ...claim, id, checkpoint, begin: false })),
      NO_DEADLINE,
    );
    expectBounded(PIECE_BYTES);
  });

  function expectBounded(valueBytes: number): void {
    const overheadBytes = 16 * 1024;
    expect(Math.max(...bytesWritten)).toBeLessThan(4 * 1024 * 1024 + valueBytes + overheadBytes);
    expect(bytesWritten.reduce((sum, bytes) => sum + bytes)).toBeGreaterThan(ids.length * valueBytes);
  }
});
