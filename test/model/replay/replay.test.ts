import { expect, test } from "vitest";
import { openPool } from "../../../server/src/core/store/pool.ts";
import { describeAdministration } from "../../helpers/calls/admin.ts";
import { ageRecords } from "../../helpers/calls/records.ts";
import { sweepAll } from "../../helpers/database/time.ts";
import { setNamespacePolicy } from "../../helpers/servers/tenants.ts";
import { namespaceOf, replayTraces } from "./replayer.ts";
import { LEASE_MINUTES, RECLAIM_WITHIN, RETENTION_MINUTES, readTraces } from "./trace.ts";

/** `npm run lab -- model --replay 10000` sets them. */
const RUNS = Number(process.env.ONCEWARD_MODEL_RUNS ?? 200);
const SEED = Number(process.env.ONCEWARD_MODEL_SEED ?? 1);
const STEPS = 30;
/** Traces side by side: their states are in memory at once. */
const SIDE_BY_SIDE = 200;

describeAdministration("The service", (world) => {
  test("answers each call as the model does", { timeout: 3_600_000 }, async () => {
    const { database } = world();
    const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
    for (let done = 0; done < RUNS; done += SIDE_BY_SIDE) {
      const one = await world().administeredTenant();
      for (const minutes of RECLAIM_WITHIN)
        for (const key of ["charge", "refund"] as const)
          await setNamespacePolicy(database, one.tenant, namespaceOf(key, minutes), {
            key_retention_s: RETENTION_MINUTES * 60,
            default_lease_ms: LEASE_MINUTES * 60_000,
            on_lease_expiry: minutes === 0 ? "HOLD" : "RECLAIM",
            ...(minutes === 3 && { reclaim_within_s: minutes * 60 }),
            late_keys: key === "refund" ? "REQUIRE_TIME" : "RUN",
          });
      const real = {
        ...one,
        timePasses: (key: string, minutes: number) => ageRecords(database, one.tenant, minutes * 60, key),
        sweep: () => sweepAll(pool),
      };
      const seed = SEED + done;
      const traces = await readTraces(seed, Math.min(SIDE_BY_SIDE, RUNS - done), STEPS);
      expect(await replayTraces(real, traces), `seed ${seed}`).toEqual([]);
    }
    await pool.close();
  });
});
