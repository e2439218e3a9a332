import { expect, test } from "vitest";
import { describeAdministration } from "../../helpers/calls/admin.ts";
import { ageRecords } from "../../helpers/calls/records.ts";
import { sweep } from "../../helpers/database/time.ts";
import { replayTrace } from "./replayer.ts";
import { LEASE_MINUTES, RETENTION_MINUTES, readTraces } from "./trace.ts";

/** `npm run model -- --replay 10000` sets them; otherwise as many as fit into a few seconds. */
const RUNS = Number(process.env.ONCEWARD_MODEL_RUNS ?? 60);
const SEED = Number(process.env.ONCEWARD_MODEL_SEED ?? 1);
const STEPS = 30;

describeAdministration("The service", (world) => {
  test("answers each call as the model does", { timeout: 600_000 }, async () => {
    const { database } = world();
    for (const [index, trace] of (await readTraces(SEED, RUNS, STEPS)).entries()) {
      const one = await world().administeredTenant({
        key_retention_s: RETENTION_MINUTES * 60,
        default_lease_ms: LEASE_MINUTES * 60_000,
        on_lease_expiry: trace.holds ? "HOLD" : "RECLAIM",
      });
      const difference = await replayTrace(
        {
          ...one,
          timePasses: (minutes) => ageRecords(database, one.tenant, minutes * 60),
          sweep: () => sweep(database),
        },
        trace,
      );
      expect(difference, `trace ${index} of seed ${SEED}`).toBeUndefined();
    }
  });
});
