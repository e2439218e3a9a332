import { parseArgs } from "node:util";
import { interruption, runToEnd } from "../interruption.ts";
import { startRig } from "../rig.ts";
import { type Failover, measureFailover, type Setting } from "./measure.ts";
import { describeFailover, formatSummary, isKept } from "./summary.ts";

/**
 * `npm run chaos:failover [-- --repetitions 3] [--seed 1]`: kills a primary under load repeatedly, promotes
 * its standby, and reports the acknowledgements that are lost. Exits 1 if a synchronous standby lost any.
 */
const SETTINGS: readonly Setting[] = [
  { standing: "synchronous", link: "local" },
  { standing: "synchronous", link: "slow" },
  { standing: "asynchronous", link: "local" },
  { standing: "asynchronous", link: "slow" },
];
const REPLICAS = 3;

const { values } = parseArgs({
  options: { repetitions: { type: "string", default: "3" }, seed: { type: "string", default: "1" } },
});

await runToEnd(() => run(Number(values.repetitions), Number(values.seed)));

async function run(repetitions: number, firstSeed: number): Promise<void> {
  await using rig = await startRig({ replicas: REPLICAS });
  const failovers: Failover[] = [];
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const setting of SETTINGS) {
      const failover = await measureFailover(rig, setting, firstSeed + repetition, interruption.signal);
      failovers.push(failover);
      console.log(describeFailover(failover));
    }
  }
  console.log(`\n${formatSummary(failovers)}`);
  if (!failovers.every(isKept)) {
    process.exitCode = 1;
    console.error("\nA synchronous standby lost acknowledgements.");
  }
}
