import { findCitusPostgres } from "../../helpers/database/citus-binaries.ts";
import { createTenant } from "../../helpers/servers/tenants.ts";
import { startCitus } from "../citus.ts";
import { openBenchDatabase } from "../database.ts";
import type { Figure } from "../figure.ts";
import { alternate } from "../load.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;

/** Measures P17: claims on a Citus of three nodes with 32 shards, beside claims on a plain Postgres. */
export const measureCitus: Figure = async ({ rig, main, violations, signal, pace, progress }) => {
  const binaries = await findCitusPostgres(process.env.PATH);
  if (binaries === undefined) {
    progress("the extension citus is not installed: P17 is left out");
    return [];
  }
  progress(`claims on Citus, ${CALLERS} callers`);
  await using cleanUp = new AsyncDisposableStack();
  const database = cleanUp.use(openBenchDatabase(await startCitus(binaries, cleanUp)));
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
  for (const each of Object.values(claims)) await each.verify();
  const plain = { "plain /s": measured.plain.perSecond };
  return [
    {
      figure: "P17",
      part: "direct",
      what: `claims/s on Citus, straight to the nodes ÷ plain Postgres, ${CALLERS} callers`,
      value: measured.direct.perSecond / measured.plain.perSecond,
      unit: "×",
      bar: { atLeast: 0.7 },
      raw: { "Citus /s": measured.direct.perSecond, ...plain },
    },
    {
      figure: "P17",
      part: "coordinated",
      what: `claims/s on Citus, by the coordinator ÷ plain Postgres, ${CALLERS} callers`,
      value: measured.coordinated.perSecond / measured.plain.perSecond,
      unit: "×",
      raw: { "Citus /s": measured.coordinated.perSecond, ...plain },
    },
  ];
};
