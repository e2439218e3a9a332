import { type ChildProcess, spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { endLeases } from "../../support/calls/records.ts";
import { newDir } from "../../support/new-dir.ts";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";
import { freePort } from "../../support/redis/redis.ts";
import { randomFor } from "../../support/seed.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { type HttpAnswer, send } from "../http/http-client.ts";

/** `ONCEWARD_KILL_CALLS=1000` makes this the long run. */
const CALLS = Number(process.env.ONCEWARD_KILL_CALLS ?? 40);
/** Calls that are in flight when a process is killed. */
const BATCH = 10;
/** A round restarts two processes, each within seconds. */
const ROUND_TIMEOUT_MS = 30_000;

const { database, server } = useServer();
const CLI = fileURLToPath(new URL("../../../clients/cli/src/main.ts", import.meta.url));
const BANK = fileURLToPath(new URL("bank.ts", import.meta.url));
const random = randomFor("kills of the HTTP proxy");

test(
  `of ${CALLS} calls under kills none has two effects, and unknown ones are ambiguous`,
  async () => {
    const dir = await newDir();
    const [ledger, config] = [join(dir, "ledger.txt"), join(dir, "routes.yaml")];
    await writeFile(ledger, "");
    const marks = `marksBegin: ${random.below(2) === 0}`;
    const route = `{ path: /charges, namespace: charges, caller: { constant: all }, ${marks} }`;
    await writeFile(config, `routes: [${route}]\n`);
    const tenant = await createTenant(database, { on_lease_expiry: "HOLD" });
    const ports = { bank: await freePort(), proxy: await freePort(), management: await freePort() };
    const env = {
      ...{ ...CHILD_ENVIRONMENT, ONCEWARD_API_KEY: tenant.apiKey },
      ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`,
    };
    const at = (port: number) => `127.0.0.1:${port}`;
    const proxyArgs = ["--conditions=@onceward/source", CLI, "http-proxy"];
    const options = ["--upstream", `http://${at(ports.bank)}`, "--config", config];
    const addresses = ["--listen", at(ports.proxy), "--management", at(ports.management)];
    const start = {
      bank: () => started([BANK, ledger, String(ports.bank)], env),
      proxy: () => started([...proxyArgs, ...options, ...addresses], env),
    };
    const running = { bank: await start.bank(), proxy: await start.proxy() };
    onTestFinished(() => Object.values(running).forEach((child) => void child.kill("SIGKILL")));
    const post = (key: string) =>
      send(ports.proxy, { path: "/charges", headers: { "idempotency-key": `"${key}"` } });

    const first = new Map<string, HttpAnswer | undefined>();
    for (let round = 0; first.size < CALLS; round++) {
      const keys = Array.from({ length: BATCH }, (_, index) => `order-${round}-${index}`);
      const name = random.below(2) === 0 ? "bank" : "proxy";
      let answered = 0;
      const answers = keys.map(async (key) => {
        const answer = await post(key).catch(() => undefined);
        answered++;
        return answer;
      });
      // Some calls are answered, and the others are at any step.
      const least = random.below(BATCH);
      await vi.waitUntil(() => answered >= least, { interval: 1, timeout: ROUND_TIMEOUT_MS });
      await setTimeout(random.below(8));
      running[name].kill("SIGKILL");
      for (const [index, answer] of (await Promise.all(answers)).entries())
        first.set(keys[index] ?? "", answer);
      running[name] = await start[name]();
    }

    await endLeases(database, tenant);
    const endings = new Map<string, number>();
    for (const [key, answer] of first) {
      const last = await post(key);
      const ending = last.status === 201 ? "charged" : "ambiguous";
      if (ending === "ambiguous")
        expect([key, last.status, last.body.toString()]).toMatchObject([
          key,
          409,
          expect.stringContaining("problem:ambiguous"),
        ]);
      if (answer?.status === 201) expect([key, ending]).toEqual([key, "charged"]);
      endings.set(ending, (endings.get(ending) ?? 0) + 1);
    }
    const effects = Map.groupBy((await readFile(ledger, "utf8")).trim().split("\n"), (key) => key);
    expect([...effects.values()].filter((lines) => lines.length > 1)).toEqual([]);
    expect((endings.get("charged") ?? 0) + (endings.get("ambiguous") ?? 0)).toBe(first.size);
    process.stderr.write(
      `${CALLS} calls with kills, ${marks}: ${JSON.stringify(Object.fromEntries(endings))}, ${effects.size} effects\n`,
    );
  },
  (CALLS / BATCH + 2) * ROUND_TIMEOUT_MS,
);

/** Starts a program, and resolves once it says that it listens. */
async function started(args: readonly string[], env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const ready = Promise.withResolvers<void>();
  let printed = "";
  for (const output of [child.stdout, child.stderr])
    output.on("data", (chunk) => {
      printed += chunk;
      if (/listening|guarding/.test(printed)) ready.resolve();
    });
  child.once("exit", () => ready.reject(new Error(`ended: ${printed}`)));
  await ready.promise;
  return child;
}
