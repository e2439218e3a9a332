import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Authenticator } from "../../server/src/access/authenticate.ts";
import type { Statement } from "../../server/src/database/pool.ts";
import type { Deadline } from "../../server/src/domain/operation.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { TEST_PEPPER } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

const PATIENT: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
/**
 * Maximum age of cached keys and tenants. A call may use them for a second more, which makes the contract's
 * 10 s.
 */
const MAX_AGE_MS = 9000;
const BOUND_MS = 10_000;
const STEP_MS = 500;
/** Calls at once. */
const CROWD = 50;

beforeEach(() => {
  // Only the clock: statements are answered in real turns of the event loop.
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/**
 * A caller's credential that was judged just now, and the statements that have been sent and are answered.
 */
async function setUp() {
  const database = await createDatabaseOfTest();
  const { id, name, apiKey } = await createTenant(database);
  const pool = openStorePool(database);
  const sent = { begun: 0, ended: 0 };
  const authenticator = new Authenticator(
    {
      ...pool,
      async run(statement: Statement, parameters, operations = 1) {
        sent.begun++;
        return pool.run<never>(statement, parameters, operations).finally(() => sent.ended++);
      },
    },
    {
      peppers: { current: TEST_PEPPER, second: undefined },
      operatorKey: undefined,
      tokens: undefined,
      sessions: undefined,
      anonymousTenant: name,
    },
  );
  const authenticate = (header: string | undefined) => authenticator.authenticate(header, PATIENT);
  return {
    database,
    pool,
    sent,
    tenantId: id,
    byKey: () => authenticate(`Bearer ${apiKey}`),
    anonymous: () => authenticate(undefined),
  };
}

type World = Awaited<ReturnType<typeof setUp>>;

interface Refresh {
  /** The table that is read. */
  readonly table: string;
  /** Judges a credential that needs it. */
  readonly judge: (world: World) => Promise<unknown>;
  /** Changes a row, while the table is out of the statements' reach. */
  readonly change: string;
  /** The answer to the credential after the first statement that succeeds after the change. */
  readonly toldThen: object;
}

const REFRESHES: Readonly<Record<string, Refresh>> = {
  "of API keys": {
    table: "api_keys",
    judge: (world) => world.byKey(),
    change: "update away set revoked_at = now() where tenant_id = $1",
    toldThen: { reason: "CREDENTIAL_INVALID" },
  },
  "of tenants": {
    table: "tenants",
    judge: (world) => world.byKey(),
    change: "update away set suspended_at = now() where id = $1",
    toldThen: { tenant: { suspended: true } },
  },
  "of tenants by their names": {
    table: "tenants",
    judge: (world) => world.anonymous(),
    change: "update away set suspended_at = now() where id = $1",
    toldThen: { tenant: { suspended: true } },
  },
};

/**
 * Judges a credential many times at once, lets what that began in the background end, and returns the
 * outcomes.
 */
async function judgeByMany(world: World, judge: Refresh["judge"]) {
  const outcomes = await Promise.all(
    Array.from({ length: CROWD }, () => judge(world).catch((error: unknown) => error)),
  );
  await untilQuiet(world);
  return outcomes;
}

/**
 * Waits until no work begins in three turns of the event loop and all statements have ended; the clock is
 * stopped.
 */
async function untilQuiet({ sent }: World): Promise<void> {
  for (let quietTurns = 0; quietTurns < 3; quietTurns++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (sent.begun > sent.ended) quietTurns = 0;
  }
}

describe.each(Object.entries(REFRESHES))("A refresh %s that fails again and again", (_what, refresh) => {
  const { table, judge, change, toldThen } = refresh;

  test("accepts known credentials for 10 s, refuses them after that, and recovers", async () => {
    const world = await setUp();
    const { database, pool, sent, tenantId } = world;
    const beganAtMs = performance.now();
    await judge(world);
    await database.query(`alter table ${table} rename to away`);
    await database.query(change, [tenantId]);
    const first = sent.begun;
    for (let ageMs = STEP_MS; ageMs < MAX_AGE_MS; ageMs += STEP_MS) {
      vi.advanceTimersByTime(STEP_MS);
      for (const outcome of await judgeByMany(world, judge)) {
        expect(outcome).toMatchObject({ role: "CALLER", tenant: { suspended: false } });
        expect((outcome as { goodUntilMs: number }).goodUntilMs - beganAtMs).toBeLessThanOrEqual(BOUND_MS);
      }
    }
    const refreshes = sent.begun - first;
    expect(refreshes).toBeGreaterThan(5);
    for (let failures = 0; failures < 5; failures++) {
      vi.advanceTimersByTime(STEP_MS);
      for (const outcome of await judgeByMany(world, judge)) expect(outcome).toBeInstanceOf(Error);
    }
    // Of a crowd's calls that need the same row, one statement asks for all.
    expect(sent.begun - first).toBeLessThan(3 * (MAX_AGE_MS / STEP_MS + 5));
    expect(pool.load()).toMatchObject({ waiting: 0 });
    await database.query(`alter table away rename to ${table}`);
    const outcomes = await judgeByMany(world, judge);
    expect(outcomes).toHaveLength(CROWD);
    for (const outcome of outcomes) expect(outcome).toMatchObject(toldThen);
  });
});
