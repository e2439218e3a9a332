import { beforeAll, expect, test } from "vitest";
import { shardStatement } from "../../server/src/citus/shard-statement.ts";
import type { Pool, Statement } from "../../server/src/database/pool.ts";
import { type Deadline, Rejected } from "../../server/src/domain/operation.ts";
import { findResolved } from "../../server/src/records/claim/find-resolved.ts";
import { UNLIMITED } from "../../server/src/records/engine/fair-queue.ts";
import type { Result } from "../../server/src/records/record.ts";
import { createRecordStore, type RecordStore } from "../../server/src/records/record-store.ts";
import { digestResult } from "../../server/src/records/result-digest.ts";
import { claimCommand, DONE } from "../support/calls/domain.ts";
import { usePool } from "../support/database/connections.ts";
import { useDatabase } from "../support/database/use-database.ts";

const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
/** Too large to be read with its record. */
const LARGE: Result = { ...DONE, payload: Buffer.alloc(100_000) };

const database = useDatabase();
const pool = usePool(database);
const sent = new Set<Statement>();

beforeAll(async () => {
  await useAll(createRecordStore(recorded(pool), UNLIMITED));
  await findResolved({ pool: recorded(pool) }, [idOf("alone")]);
});

function recorded(of: Pool): Pool {
  return {
    ...of,
    run(statement, parameters, operations) {
      sent.add(statement);
      return of.run(statement, parameters, operations);
    },
  };
}

const idOf = (key: string) => ({ tenantId: 1, namespace: "charges", key });

/** Runs each operation of callers. */
async function useAll(store: RecordStore): Promise<void> {
  const claim = async (keys: readonly string[]) => {
    const outcomes = await store.claim(
      keys.map((key) => claimCommand({ id: idOf(key) })),
      NO_DEADLINE,
    );
    return outcomes.map((outcome, i) => {
      if (outcome instanceof Rejected || outcome.kind !== "claimed")
        throw new Error("a claim was not granted");
      return { id: idOf(keys[i] as string), fencingToken: outcome.fencingToken };
    });
  };
  const [alone] = await claim(["alone"]);
  const [first, second] = await claim(["first", "second"]);
  if (alone === undefined || first === undefined || second === undefined)
    throw new Error("no claim was granted");
  const extension = { ...alone, leaseMs: 60_000, checkpoint: undefined, begin: false };
  const completion = { ...first, result: LARGE, resultDigest: digestResult(LARGE), keyRetentionS: undefined };
  // On Citus, these go by the coordinator.
  const settled = [
    ...(await store.extendLease([extension], NO_DEADLINE)),
    ...(await store.release([{ ...alone, reason: "retry", giveBack: false }], NO_DEADLINE)),
    ...(await store.complete([completion], NO_DEADLINE)),
  ];
  expect(settled.filter((outcome) => outcome instanceof Rejected)).toEqual([]);
  await claim(["alone"]);
  await store.read([first.id], NO_DEADLINE);
}

test("each statement of callers' operations can be for one shard's table, held first", () => {
  for (const statement of sent) {
    const { text } = shardStatement(statement, 7);
    expect(text).not.toMatch(/\brecords\b/);
    expect(text).toMatch(/onceward_hold_shard\(7, \$(1::int\[\]|14::bigint)\)/);
  }
  expect([...sent].map(({ name }) => name).sort()).toEqual([
    "claim_record",
    "claim_records",
    "complete_records",
    "extend_leases",
    "find_resolved_records",
    "read_payloads",
    "read_records",
    "release_records",
    "take_over_records",
  ]);
});
