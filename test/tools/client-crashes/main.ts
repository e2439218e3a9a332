import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { failUsage, readCommandLine, wholeNumber } from "../../../server/dev/command-line.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { printable } from "../../../server/src/core/commands/printable.ts";
import { migrate } from "../../../server/src/core/store/migrate.ts";
import { createRandom } from "../../helpers/random.ts";
import { startServerProcess } from "../../helpers/servers/server-process.ts";
import { createTenant, setNamespacePolicy } from "../../helpers/servers/tenants.ts";
import { openBenchDatabase } from "../bench/database.ts";
import { Effects } from "./effects.ts";
import { brokenPromises, type Ending, type Phase, type Policy, phaseOf, type Story } from "./judge.ts";
import { type Delivery, Worker, type WorkerProgram } from "./worker.ts";

const USAGE = `npm run lab -- clients [CLIENT...] [OPTIONS]: ends processes of a client at any moment of a run, half of them under
HOLD and half under RECLAIM, delivers their operations again, and compares the effects with what the policy promises. A process is
killed, or its client is closed, or its caller leaves, or its own call's time limit passes, in turn. Exits 1 if a promise is broken,
or if a phase of a run was never hit. Clients: typescript, python, asyncio, go; default: all.
  --kills N     ends of each client; default: 200
  --seed N      the seed of the moments; default: 1
  --lease-ms N  the length of each lease, longer on a machine that is busy; default: 1000, the shortest of the service`;

const { values, positionals } = readCommandLine(USAGE, {
  allowPositionals: true,
  options: {
    kills: { type: "string", default: "200" },
    seed: { type: "string", default: "1" },
    "lease-ms": { type: "string", default: "1000" },
  },
});
const kills = wholeNumber(USAGE, "kills", values.kills, 1, 1e6);
const seed = wholeNumber(USAGE, "seed", values.seed, 0, 2 ** 32 - 1);
const leaseMs = wholeNumber(USAGE, "lease-ms", values["lease-ms"], 1000, 60_000);
const CLIENTS = ["typescript", "python", "asyncio", "go"] as const;
type Client = (typeof CLIENTS)[number];
const clients = positionals.length > 0 ? positionals.map(clientNamed) : CLIENTS;

/** In turn. */
const ENDINGS = ["kill", "close", "cancel", "timeout"] as const satisfies readonly Ending[];

/** Each kill waits for a lease; so many processes at once leave the processor to the server. */
const AT_ONCE = 8;
/** Longer than a run takes, on a machine that is busy. */
const MAX_DELAY_MS = 12;
/** How long the answer to an effect is held back whose worker is interrupted: longer than the interruption takes. */
const ANSWER_AFTER_MS = 600;
/** The time limit of a call that runs into it, and of one that does not. */
const TIME_LIMIT_MS = { short: 200, long: 60_000 };
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

for (const client of clients) await crash(client);

function clientNamed(name: string): Client {
  return CLIENTS.find((client) => client === name) ?? failUsage(USAGE, `this program has no client ${name}`);
}

async function crash(client: Client): Promise<void> {
  const program = await programOf(client);
  const random = createRandom(seed);
  const plans = Array.from({ length: kills }, (_, index) => ({
    policy: index % 2 === 0 ? ("HOLD" as const) : ("RECLAIM" as const),
    ending: ENDINGS[Math.floor(index / 2) % ENDINGS.length] ?? "kill",
    key: `${client}-${seed}-${index}`,
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
      const phase = `${plan.policy}, ended ${phaseOf(story)}`;
      phases.set(phase, (phases.get(phase) ?? 0) + 1);
      for (const promise of brokenPromises(story)) {
        broken++;
        process.stdout.write(printable(`BROKEN ${plan.key}: ${promise}\n  ${JSON.stringify(story)}\n`));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  process.stdout.write(
    `${client}: ${kills} ends (${ENDINGS.join(", ")}), seed ${seed}, ${broken} broken promises\n`,
  );
  const all: Phase[] = ["before the effect", "between the effect and its completion", "after the completion"];
  for (const phase of all.flatMap((each) => [`HOLD, ended ${each}`, `RECLAIM, ended ${each}`])) {
    const count = phases.get(phase) ?? 0;
    process.stdout.write(`${String(count).padStart(6)} ${phase}\n`);
    if (count === 0) process.exitCode = 1;
  }
  if (broken > 0) process.exitCode = 1;
}

/** How one operation's first delivery is ended. */
interface Plan {
  readonly policy: Policy;
  readonly ending: Ending;
  readonly key: string;
  /** Whether the delay counts from the effect, and not from the beginning. */
  readonly afterEffect: boolean;
  readonly delayMs: number;
}

async function tell(program: WorkerProgram, plan: Plan): Promise<Story> {
  const { policy, ending, key, afterEffect, delayMs } = plan;
  const timeLimitMs = ending === "timeout" ? TIME_LIMIT_MS.short : TIME_LIMIT_MS.long;
  const interruption = ending === "cancel" ? "cancel" : "close";
  const delivery = { ...shared(policy), key, acceptAmbiguous: false, interruption, timeLimitMs } as const;
  const worker = new Worker(program);
  const end = () => {
    if (ending === "timeout") return;
    const signal = ending === "kill" ? "SIGKILL" : "SIGTERM";
    if (delayMs === 0) worker.end(signal);
    else void sleep(delayMs).then(() => worker.end(signal));
  };
  // An interruption in the middle of the effect's call; a kill is fast enough to hit a completion, too.
  if (ending !== "kill") effects.onFirst(key, ANSWER_AFTER_MS, afterEffect ? end : () => {});
  else if (afterEffect) effects.onFirst(key, 0, end);
  const begunAtMs = performance.now();
  await worker.begin(delivery);
  if (!afterEffect) end();
  const first = await worker.outcome();
  const effectsOfFirst = effects.of(key).length;
  const again = { ...delivery, timeLimitMs: TIME_LIMIT_MS.long };
  const second = await deliver(program, again);
  const effectsBeforeAccepting = effects.of(key).length;
  const isAmbiguous = second.reason === "AMBIGUOUS";
  const accepting = isAmbiguous ? await deliver(program, { ...again, acceptAmbiguous: true }) : undefined;
  const last = await deliver(program, again);
  return {
    policy,
    ending,
    begunAtMs,
    leaseMs,
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
  return { address, apiKey: tenant.apiKey, namespace: namespaceOf(policy), effectUrl, leaseMs };
}

function namespaceOf(policy: Policy): string {
  return policy.toLowerCase();
}

/** Returns a client's program. The one of Go is built; ONCEWARD_PYTHON names a Python with the client's dependencies. */
async function programOf(client: Client): Promise<WorkerProgram> {
  switch (client) {
    case "typescript": {
      const script = fileURLToPath(new URL("deliver.ts", import.meta.url));
      return { program: process.execPath, args: ["--conditions=@onceward/source", script] };
    }
    case "go": {
      const program = join(dir, "deliver");
      await run("go", ["build", "-o", program, "./internal/deliver"], { cwd: GO });
      return { program, args: [] };
    }
    case "python":
    case "asyncio": {
      const { ONCEWARD_PYTHON: program = "python3" } = process.env;
      const args = [`${PYTHON}conformance/deliver.py`, ...(client === "asyncio" ? ["--asyncio"] : [])];
      return { program, args, env: { PYTHONPATH: `${PYTHON}src` } };
    }
  }
}
