import { findCitusPostgres } from "../../../helpers/database/citus-binaries.ts";
import { createTenant } from "../../../helpers/servers/tenants.ts";
import { type BenchCitus, startCitus } from "../citus.ts";
import { openBenchDatabase } from "../database.ts";
import type { Figure } from "../figure.ts";
import { alternate, runSlice } from "../load.ts";
import { processorTimeOf, processorTimeOfFamily } from "../processor-time.ts";
import type { Station } from "../rig.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";
import { measureAwayWorker } from "./citus-away.ts";

const CALLERS = 256;

/**
 * Measures P17: claims on a Citus of three nodes with 32 shards, beside claims on a plain Postgres, and the processor time
 * of each part.
 */
export const measureCitus: Figure = async (bench) => {
  const { rig, main, violations, signal, pace, progress } = bench;
  const binaries = await findCitusPostgres(process.env.PATH);
  if (binaries === undefined) {
    progress("the extension citus is not installed: P17 is left out");
    return [];
  }
  progress(`claims on Citus, ${CALLERS} callers`);
  await using cleanUp = new AsyncDisposableStack();
  const { url, pids, killWorker } = await startCitus(binaries, cleanUp);
  const database = cleanUp.use(openBenchDatabase(url));
  const on = { database, tenant: await createTenant(database) };
  await using direct = await rig.startStation({ on, env: { ONCEWARD_CITUS_DIRECT: "true" } });
  await using coordinated = await rig.startStation({ on });
  const claims = {
    plain: new FreshClaims(oncewardTarget(main.client.calls, main.database), violations),
    direct: new FreshClaims(oncewardTarget(direct.client.calls, database), violations),
    coordinated: new FreshClaims(oncewardTarget(coordinated.client.calls, database), violations),
  };
  const measured = await alternate(
    { plain: claims.plain.claim, direct: claims.direct.claim, coordinated: claims.coordinated.claim },
    { ...pace, callers: CALLERS },
    signal,
  );
  const processor = async (way: "direct" | "coordinated", { server }: Station) => {
    const before = await processorTimes(server.pid, pids);
    let count = 0;
    const counted = async () => {
      await claims[way].claim();
      count++;
    };
    await runSlice(counted, { callers: CALLERS, durationMs: pace.slices * pace.sliceMs }, signal);
    const after = await processorTimes(server.pid, pids);
    const microsEach = (part: keyof typeof before) => ((after[part] - before[part]) / count) * 1e6;
    return {
      "replica µs": microsEach("replicaS"),
      "coordinator µs": microsEach("coordinatorS"),
      "workers µs": microsEach("workersS"),
    };
  };
  const used = {
    direct: await processor("direct", direct),
    coordinated: await processor("coordinated", coordinated),
  };
  for (const each of Object.values(claims)) await each.verify();
  const ways = [
    { part: "direct", what: "straight to the nodes", station: direct },
    { part: "coordinated", what: "by the coordinator", station: coordinated },
  ];
  const away = await measureAwayWorker(bench, database, ways, killWorker);
  const plain = { "plain /s": measured.plain.perSecond };
  return [
    {
      figure: "P17",
      part: "direct",
      what: `claims/s on Citus, straight to the nodes ÷ plain Postgres, ${CALLERS} callers`,
      value: measured.direct.perSecond / measured.plain.perSecond,
      unit: "×",
      bar: { atLeast: 0.7 },
      raw: { "Citus /s": measured.direct.perSecond, ...plain, ...used.direct },
    },
    {
      figure: "P17",
      part: "coordinated",
      what: `claims/s on Citus, by the coordinator ÷ plain Postgres, ${CALLERS} callers`,
      value: measured.coordinated.perSecond / measured.plain.perSecond,
      unit: "×",
      raw: { "Citus /s": measured.coordinated.perSecond, ...plain, ...used.coordinated },
    },
    ...away,
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
