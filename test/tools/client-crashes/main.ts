import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { printable } from "../../../server/src/core/commands/printable.ts";
import { migrate } from "../../../server/src/core/store/migrate.ts";
import { createRandom } from "../../helpers/random.ts";
import { startServerProcess } from "../../helpers/servers/server-process.ts";
import { createTenant, setNamespacePolicy } from "../../helpers/servers/tenants.ts";
import { openBenchDatabase } from "../bench/database.ts";
import { failUsage, readCommandLine, wholeNumber } from "../command-line.ts";
import { Effects } from "./effects.ts";
import { brokenPromises, type Phase, type Policy, phaseOf, type Story } from "./judge.ts";
import { type Delivery, Worker, type WorkerProgram } from "./worker.ts";

const USAGE = `npm run chaos:clients -- [go] [python] [OPTIONS]: kills processes of a client at any moment of a run, half of
them under HOLD and half under RECLAIM, delivers their operations again, and compares the effects with what the policy
promises. Exits 1 if a promise is broken, or if a phase of a run was never hit. Default: go.
  --kills N  kills of each client; default: 200
  --seed N   the seed of the moments; default: 1`;

const { values, positionals } = readCommandLine(USAGE, {
  allowPositionals: true,
  options: { kills: { type: "string", default: "200" }, seed: { type: "string", default: "1" } },
});
const kills = wholeNumber(USAGE, "kills", values.kills, 1, 1e6);
const seed = wholeNumber(USAGE, "seed", values.seed, 0, 2 ** 32 - 1);
const languages = (positionals.length > 0 ? positionals : ["go"]).map(languageNamed);

/** Each kill waits for a lease; so many processes at once leave the processor to the server. */
const AT_ONCE = 8;
/** The shortest lease of the service. */
const LEASE_MS = 1000;
/** Longer than a run takes, on a machine that is busy. */
const MAX_DELAY_MS = 12;
const run = promisify(execFile);
const GO = fileURLToPath(new URL("../../../clients/go/", import.meta.url));
const PYTHON = fileURLToPath(new URL("../../../clients/python/", import.meta.url));

await using cleanUp = new AsyncDisposableStack();
const dir = await mkdtemp(join(tmpdir(), "ow-client-crashes-"));
cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
// If this program runs as root, Postgres runs as another user, who needs access.
await chmod(dir, 0o755);
const postgres = await startEmbeddedPostgres({ dataDir: join(dir, "data"), settings: { fsync: "off" } });
cleanUp.defer(() => postgres.stop());
await migrate(postgres.url("postgres"), () => {});
await using database = openBenchDatabase(postgres.url("postgres"));
const tenant = await createTenant(database);
for (const policy of ["HOLD", "RECLAIM"] as const)
  await setNamespacePolicy(database, tenant, namespaceOf(policy), { on_lease_expiry: policy });
const server = await startServerProcess(postgres.url("postgres"));
cleanUp.defer(() => server.end());
await using effects = new Effects();
const effectUrl = await effects.listen();

for (const language of languages) await crash(language);

function languageNamed(name: string): "go" | "python" {
  if (name === "go" || name === "python") return name;
  failUsage(USAGE, `this program has no client of ${name}`);
}

async function crash(language: "go" | "python"): Promise<void> {
  const program = await programOf(language);
  const random = createRandom(seed);
  const plans = Array.from({ length: kills }, (_, index) => ({
    policy: index % 2 === 0 ? ("HOLD" as const) : ("RECLAIM" as const),
    key: `${language}-${seed}-${index}`,
    afterEffect: random.next() < 0.6,
    // A completion takes about a millisecond, which a timer hardly hits.
    delayMs: random.next() < 0.4 ? 0 : random.next() * MAX_DELAY_MS,
  }));
  const phases = new Map<string, number>();
  let broken = 0;
  const waiting = plans.values();
  const work = async () => {
    // The workers share the iterator: each takes the next plan.
    for (const plan of waiting) {
      const story = await tell(program, plan);
      const phase = `${plan.policy}, killed ${phaseOf(story)}`;
      phases.set(phase, (phases.get(phase) ?? 0) + 1);
      for (const promise of brokenPromises(story)) {
        broken++;
        process.stdout.write(printable(`BROKEN ${plan.key}: ${promise}\n  ${JSON.stringify(story)}\n`));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  process.stdout.write(`${language}: ${kills} kills, seed ${seed}, ${broken} broken promises\n`);
  const all: Phase[] = ["before the effect", "between the effect and its completion", "after the completion"];
  for (const phase of all.flatMap((each) => [`HOLD, killed ${each}`, `RECLAIM, killed ${each}`])) {
    const count = phases.get(phase) ?? 0;
    process.stdout.write(`${String(count).padStart(6)} ${phase}\n`);
    if (count === 0) process.exitCode = 1;
  }
  if (broken > 0) process.exitCode = 1;
}

/** How one operation's first delivery is killed. */
interface Plan {
  readonly policy: Policy;
  readonly key: string;
  /** Whether the delay counts from the effect, and not from the beginning. */
  readonly afterEffect: boolean;
  readonly delayMs: number;
}

async function tell(program: WorkerProgram, { policy, key, afterEffect, delayMs }: Plan): Promise<Story> {
  const delivery = { ...shared(policy), key, acceptAmbiguous: false };
  const worker = new Worker(program);
  const kill = () => {
    if (delayMs === 0) worker.kill();
    else void sleep(delayMs).then(() => worker.kill());
  };
  if (afterEffect) effects.onFirst(key, kill);
  await worker.begin(delivery);
  if (!afterEffect) kill();
  const first = await worker.outcome();
  const effectsOfFirst = effects.of(key).length;
  const second = await deliver(program, delivery);
  const effectsBeforeAccepting = effects.of(key).length;
  const isAmbiguous = second.reason === "AMBIGUOUS";
  const accepting = isAmbiguous ? await deliver(program, { ...delivery, acceptAmbiguous: true }) : undefined;
  const last = await deliver(program, delivery);
  return {
    policy,
    first,
    effectsOfFirst,
    second,
    effectsBeforeAccepting,
    accepting,
    last,
    effects: effects.of(key),
  };
}

async function deliver(program: WorkerProgram, delivery: Delivery) {
  const worker = new Worker(program);
  await worker.begin(delivery);
  const outcome = await worker.outcome();
  if (outcome === undefined) throw new Error("a worker took too long");
  return outcome;
}

function shared(policy: Policy) {
  const address = `http://127.0.0.1:${server.grpcPort}`;
  return { address, apiKey: tenant.apiKey, namespace: namespaceOf(policy), effectUrl, leaseMs: LEASE_MS };
}

function namespaceOf(policy: Policy): string {
  return policy.toLowerCase();
}

/** Returns a language's program. The one of Go is built; ONCEWARD_PYTHON names a Python with the client's dependencies. */
async function programOf(language: "go" | "python"): Promise<WorkerProgram> {
  switch (language) {
    case "go": {
      const program = join(dir, "deliver");
      await run("go", ["build", "-o", program, "./internal/deliver"], { cwd: GO });
      return { program, args: [] };
    }
    case "python": {
      const { ONCEWARD_PYTHON: program = "python3" } = process.env;
      return { program, args: [`${PYTHON}conformance/deliver.py`], env: { PYTHONPATH: `${PYTHON}src` } };
    }
  }
}
