import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createOnceward } from "@onceward/client";
import { expect, onTestFinished, test } from "vitest";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";
import type { SuspendedTask } from "./suspended-worker.ts";

const { database, server } = useServer();

const WORKER = fileURLToPath(new URL("suspended-worker.ts", import.meta.url));
/** The shortest lease of the service. */
const LEASE_MS = 1000;
/** Far longer than a lease, and shorter than a test's timeout. */
const WAIT_MS = 30_000;

function startWorker(tenant: TestTenant, task: Pick<SuspendedTask, "task" | "suspendAt">): ChildProcess {
  const address = `http://127.0.0.1:${server.grpcPort}`;
  const settings: SuspendedTask = { ...task, address, apiKey: tenant.apiKey, leaseMs: LEASE_MS };
  const worker = spawn(
    process.execPath,
    ["--conditions=@onceward/source", WORKER, JSON.stringify(settings)],
    { stdio: ["ignore", "pipe", "inherit"], timeout: 2 * WAIT_MS, killSignal: "SIGKILL" },
  );
  onTestFinished(() => void worker.kill("SIGKILL"));
  return worker;
}

/** Returns the key of the tenant's only record. */
async function onlyKey({ id }: TestTenant): Promise<string> {
  const rows = await database.query("select key from records where tenant_id = $1", [id]);
  expect(rows).toHaveLength(1);
  return `${rows[0]?.key}`;
}

const tasks = [
  { task: "run", suspendAt: 1, at: "a claim" },
  { task: "checkpoint", suspendAt: 2, at: "a checkpoint" },
  // A lookup and the claim come before the checkpoint after which a tool begins.
  { task: "tool", suspendAt: 3, at: "the checkpoint of a tool" },
] as const;

test.each(tasks)(
  "a process suspended at the answer to $at beyond its lease has no second effect",
  async ({ task, suspendAt }) => {
    const tenant = await createTenant(database);
    const worker = startWorker(tenant, { task, suspendAt });
    const lines: string[] = [];
    const suspended = Promise.withResolvers<void>();
    if (worker.stdout === null) throw new Error("the worker's output is not piped");
    createInterface({ input: worker.stdout }).on("line", (line) => {
      lines.push(line);
      if (line === "suspended") suspended.resolve();
    });
    const ended = once(worker, "close");
    await Promise.race([suspended.promise, ended]);

    await using other = createOnceward({
      address: `http://127.0.0.1:${server.grpcPort}`,
      apiKey: tenant.apiKey,
    });
    const operation = { namespace: "charges", key: await onlyKey(tenant), waitMs: WAIT_MS };
    // The stored result, if the worker's lease did not end before this.
    const effects: string[] = [];
    await other.run(operation, () => void effects.push("effect"));
    worker.kill("SIGCONT");
    expect(await ended).toEqual([0, null]);

    effects.push(...lines.filter((line) => line === "effect"));
    expect(effects).toEqual(["effect"]);
    expect(lines).toContain("suspended");
  },
);
