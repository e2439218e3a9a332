import { readCommandLine, wholeNumber } from "../../../server/dev/command-line.ts";
import { printable } from "../../../server/src/core/commands/printable.ts";
import { createRandom } from "../../helpers/random.ts";
import { redeliverLate } from "./late.ts";
import type { Guard } from "./messages.ts";
import { makePlan } from "./operations.ts";
import { createProgress } from "./progress.ts";
import { startProvider } from "./provider.ts";
import { comparison, explanation, faults, lateComparison, lateFaults, summary } from "./report.ts";
import { deliverAll } from "./run.ts";
import { startService } from "./service.ts";

/** Exits 1 if the guarded run breaks a promise or an option is wrong, and 130 if it was interrupted. */
const USAGE = `npm run demo -- [options]: runs the same deliveries and crashes without Onceward and with it.
  --seed N     the same seed makes the same deliveries and crashes; default: random
  --crashes N  workers that die during an effect; default: 15`;

/** Without progress for this time, the demo hangs. Each run takes a few seconds; on a busy machine, minutes. */
const MAX_SILENCE_MS = 55_000;

// A second Ctrl-C is ignored: it would leave a PostgreSQL running.
const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () =>
    interruption.abort(new Error(`interrupted by ${signal}; everything is stopped and removed`)),
  );
}

const hang = new AbortController();
const silence = setTimeout(
  () => hang.abort(new Error(`no progress for ${MAX_SILENCE_MS / 1000} s`)),
  MAX_SILENCE_MS,
).unref();

try {
  await demonstrate(readOptions(), AbortSignal.any([interruption.signal, hang.signal]));
} catch (error) {
  console.error(printable(`${error instanceof Error ? error.message : error}`));
  process.exitCode = interruption.signal.aborted ? 130 : 1;
}

function readOptions() {
  const { values } = readCommandLine(USAGE, {
    options: { seed: { type: "string" }, crashes: { type: "string", default: "15" } },
  });
  const seed =
    values.seed === undefined
      ? Math.floor(Math.random() * 2 ** 32)
      : wholeNumber(USAGE, "seed", values.seed, 0, 2 ** 32 - 1);
  return { seed, crashCount: wholeNumber(USAGE, "crashes", values.crashes, 0, 1000) };
}

async function demonstrate(
  { seed, crashCount }: ReturnType<typeof readOptions>,
  signal: AbortSignal,
): Promise<void> {
  const random = createRandom(seed);
  const plan = makePlan(random, crashCount);
  console.log(
    `${plan.operations.length} GitHub webhook payloads, each delivered three times, in an order that`,
  );
  console.log(
    `the seed ${seed} determines (--seed ${seed} repeats it), to 8 workers of which ${crashCount} die mid-effect.`,
  );
  console.log("Starting a provider, and Onceward on a PostgreSQL of its own ...");

  await using cleanUp = new AsyncDisposableStack();
  const provider = await startProvider(random);
  cleanUp.defer(() => provider.close());
  const service = cleanUp.use(await startService());
  signal.throwIfAborted();
  console.log(`Onceward is serving at ${service.guard.address}, on PostgreSQL ${service.postgresVersion}.\n`);

  const setup = { plan, provider, signal };
  const deliver = (name: string, guard?: Guard) => {
    const show = createProgress(name);
    const onProgress = (acknowledged: number, total: number) => {
      silence.refresh();
      show(acknowledged, total);
    };
    return deliverAll({ ...setup, guard, onProgress });
  };
  const unguarded = await deliver("Unguarded");
  const guarded = await deliver("Guarded", service.guard);
  silence.refresh();
  const late = await redeliverLate({ operations: plan.operations, provider, service, signal });

  console.log("");
  const shown = [
    ...comparison({ unguarded, guarded }),
    "",
    ...explanation(guarded),
    "",
    ...lateComparison(late),
    "",
  ];
  for (const line of shown) console.log(line);
  for (const failure of new Set(guarded.failures)) console.log(printable(`A failure, retried: ${failure}`));
  const broken = [...faults(guarded), ...lateFaults(late)];
  for (const fault of broken) console.error(printable(`DOES NOT HOLD: ${fault}`));
  if (broken.length > 0) process.exitCode = 1;
  console.log(summary(guarded));
}
