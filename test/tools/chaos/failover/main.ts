import { readCommandLine, wholeNumber } from "../../../../server/dev/command-line.ts";
import { interruption, runToEnd } from "../interruption.ts";
import { startRig } from "../rig.ts";
import { type Failover, measureFailover, type Setting } from "./measure.ts";
import { describeFailover, formatSummary, isKept } from "./summary.ts";

const USAGE = `npm run lab -- failover [OPTIONS]: kills a primary under load, promotes its standby, and reports what
is lost. Exits 1 if a synchronous standby lost an acknowledgement.
  --repetitions N  failovers of each setting; default: 3
  --seed N         the seed of the first; default: 1`;

const SETTINGS: readonly Setting[] = [
  { standing: "synchronous", link: "local" },
  { standing: "synchronous", link: "slow" },
  { standing: "asynchronous", link: "local" },
  { standing: "asynchronous", link: "slow" },
];
const REPLICAS = 3;

const { values } = readCommandLine(USAGE, {
  options: { repetitions: { type: "string", default: "3" }, seed: { type: "string", default: "1" } },
});
const repetitions = wholeNumber(USAGE, "repetitions", values.repetitions, 1, 1000);
const firstSeed = wholeNumber(USAGE, "seed", values.seed, 0, 2 ** 32 - 1);

await runToEnd(run);

async function run(): Promise<void> {
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
