import { expect, onTestFinished, test } from "vitest";
import { startTcpProxy } from "../support/network/tcp-proxy.ts";
import { cliFor } from "../support/processes/cli.ts";
import { type CliTenant, useCliWorld } from "../support/processes/cli-world.ts";

const world = useCliWorld();
/** A process on a busy machine loads the program for seconds. */
const WAIT = { timeout: 40_000 };
const PHASES = ["claims", "claims with completion", "replays"];

/** Returns what a bench left behind: namespaces, records that are not forgotten, and API keys that are still valid. */
async function left({ cli }: CliTenant) {
  const keys = (await cli.json("keys", "list")) as { label: string; revokedAt?: string }[];
  return {
    namespaces: await cli.json("namespaces", "list"),
    records: ((await cli.json("records", "list")) as object[]).length,
    keys: keys.filter(({ label, revokedAt }) => label === "onceward bench" && revokedAt === undefined).length,
  };
}
const NOTHING = { namespaces: [], records: 0, keys: 0 };

test("bench measures claims, completions and replays, and leaves nothing", async () => {
  const tenant = await world().tenantWithCli();
  const args = ["bench", "--duration", "600ms", "--callers", "4", "--yes"];
  const { phases, interrupted } = (await tenant.cli.json(...args)) as {
    phases: { name: string; done: number; errors: object; limitedBy: string }[];
    interrupted: boolean;
  };
  expect(interrupted).toBe(false);
  expect(phases.map(({ name }) => name)).toEqual(PHASES);
  for (const phase of phases) {
    expect(phase).toMatchObject({ errors: {}, limitedBy: expect.stringMatching(/latency|processor/) });
    expect(phase.done).toBeGreaterThan(0);
  }
  expect(await left(tenant)).toEqual(NOTHING);
});

test("bench reports the quota that refuses it, also of a tenant that needs a long retention", async () => {
  const tenant = await world().tenantWithCli();
  const operator = await world().operatorCli();
  const limits = ["--operations-per-second", "5", "--min-key-retention", "2h", "--yes"];
  await operator("operator", "tenants", "limits", tenant.tenant.name, ...limits);
  const { stdout } = await tenant.cli("bench", "--duration", "900ms", "--callers", "8", "--yes");
  expect(stdout).toMatch(
    /claims: limited by the tenant's quota of 5 operations a second: \d+ QUOTA_RATE refused/,
  );
  expect(await left(tenant)).toEqual(NOTHING);
});

test("bench asks first, and refuses what it can't do before it makes anything", async () => {
  const tenant = await world().tenantWithCli();
  const asked: string[] = [];
  const answer = async (question: string) => {
    asked.push(question);
    return "n";
  };
  expect(await tenant.cli.answering(answer, "bench")).toMatchObject({ exit: 1, stdout: "" });
  expect(asked).toEqual([expect.stringMatching(/64 callers for 15 s as the tenant \S+, which has no quota/)]);
  expect(await tenant.cli("bench")).toMatchObject({ exit: 2 });
  for (const [option, value, limit] of [
    ["--duration", "1h", "300ms to 10m"],
    ["--callers", "0", "1 to 4096"],
    ["--result-bytes", "1MiB", "32KiB"],
  ] as const)
    expect(await tenant.cli("bench", option, value)).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining(limit),
    });
  expect(await left(tenant)).toEqual(NOTHING);
});

test("an interrupted bench prints what it has, and leaves nothing", async () => {
  const tenant = await world().tenantWithCli();
  const bench = tenant.cli.start("bench", "--duration", "10m", "--callers", "4", "--yes");
  await expect.poll(() => left(tenant).then(({ records }) => records), WAIT).toBeGreaterThan(0);
  bench.interrupt();
  expect(await bench.ended).toBe(1);
  expect(bench.printed.stdout).toMatch(/^PHASE .*\nclaims +\d+ /);
  expect(bench.printed.stderr).toContain("Interrupted. The bench's namespace and key are removed.");
  expect(await left(tenant)).toEqual(NOTHING);
});

test("a bench that loses the service says how to remove what it left", async () => {
  const tenant = await world().tenantWithCli();
  const proxy = await startTcpProxy(world().server.grpcPort);
  onTestFinished(() => proxy.close());
  const bench = cliFor({ grpcPort: proxy.port }, tenant.adminKey).start("bench --duration 10m --yes");
  await expect.poll(() => left(tenant).then(({ records }) => records), WAIT).toBeGreaterThan(0);
  proxy.setMode("refuse");
  bench.interrupt();
  expect(await bench.ended).toBe(1);
  const [, byHand = ""] =
    /onceward (namespaces delete \S+ --force --yes) removes it/.exec(bench.printed.stderr) ?? [];
  expect(await tenant.cli(...byHand.split(" "))).toMatchObject({ exit: 0 });
  await expect.poll(() => left(tenant).then(({ records }) => records), WAIT).toBe(0);
});
