import { findCitusPostgres } from "../../../helpers/database/citus-binaries.ts";
import { createTenant } from "../../../helpers/servers/tenants.ts";
import { type BenchCitus, startCitus } from "../citus.ts";
import { openBenchDatabase } from "../database.ts";
import type { Figure } from "../figure.ts";
import { alternate, runSlice } from "../load.ts";
import { processorTimeOf, processorTimeOfFamily } from "../processor-time.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;

/**
 * Measures P17: claims on a Citus of three nodes, beside claims on a plain Postgres, and the processor time
 * of each part.
 */
export const measureCitus: Figure = async ({ rig, main, violations, signal, pace, progress }) => {
  const binaries = await findCitusPostgres(process.env.PATH);
  if (binaries === undefined) {
    progress("the extension citus is not installed: P17 is skipped");
    return [];
  }
  progress(`claims on Citus, ${CALLERS} callers`);
  await using cleanUp = new AsyncDisposableStack();
  const { url, pids } = await startCitus(binaries, cleanUp);
  const database = cleanUp.use(openBenchDatabase(url));
  const on = { database, tenant: await createTenant(database) };
  await using station = await rig.startStation({ on });
  const claims = {
    plain: new FreshClaims(oncewardTarget(main.client.calls, main.database), violations),
    citus: new FreshClaims(oncewardTarget(station.client.calls, database), violations),
  };
  const measured = await alternate(
    { plain: claims.plain.claim, citus: claims.citus.claim },
    { ...pace, callers: CALLERS },
    signal,
  );
  const before = await processorTimes(station.server.pid, pids);
  let count = 0;
  const counted = async () => {
    await claims.citus.claim();
    count++;
  };
  await runSlice(counted, { callers: CALLERS, durationMs: pace.slices * pace.sliceMs }, signal);
  const after = await processorTimes(station.server.pid, pids);
  const microsEach = (part: keyof typeof before) => ((after[part] - before[part]) / count) * 1e6;
  for (const each of Object.values(claims)) await each.verify();
  return [
    {
      figure: "P17",
      what: `claims/s on Citus ÷ plain Postgres, ${CALLERS} callers`,
      value: measured.citus.perSecond / measured.plain.perSecond,
      unit: "×",
      bar: { atLeast: 0.7 },
      raw: {
        "Citus /s": measured.citus.perSecond,
        "plain /s": measured.plain.perSecond,
        "replica µs": microsEach("replicaS"),
        "coordinator µs": microsEach("coordinatorS"),
        "workers µs": microsEach("workersS"),
      },
    },
  ];
};

/** Returns the processor time that the replica and the nodes have used so far, in seconds. */
async function processorTimes(replica: number, { coordinator, workers }: BenchCitus["pids"]) {
  const ofWorkers = await Promise.all(workers.map(processorTimeOfFamily));
  return {
    replicaS: await processorTimeOf(replica),
    coordinatorS: await processorTimeOfFamily(coordinator),
    workersS: ofWorkers.reduce((sum, each) => sum + each, 0),
  };
}
