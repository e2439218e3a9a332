import { expect, onTestFinished, test } from "vitest";
import { endLeases } from "../support/calls/records.ts";
import { startTcpProxy } from "../support/network/tcp-proxy.ts";
import { cliFor, failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";

/** Usage is stored at once, so that a test need not wait. */
const world = useCliWorld({ ONCEWARD_USAGE_FLUSH: "100ms" });
/** A process on a busy machine loads the program for seconds. */
const WAIT = { timeout: 40_000 };

async function withAmbiguous() {
  const tenant = await world().tenantWithCli({ on_lease_expiry: "HOLD" });
  for (const namespace of ["charges", "payouts"])
    await tenant.caller.claim({ namespace, key: `${namespace}-1` });
  await endLeases(world().database, tenant.tenant, "payouts-1");
  return tenant;
}

test("watch --once prints usage, ambiguous records and unfinished jobs of its scope", async () => {
  const { cli } = await withAmbiguous();
  const changed = await cli("namespaces set payouts --key-retention 9d --apply-to-existing --yes");
  expect(changed).toMatchObject({ exit: 0 });
  const look = (...args: string[]) => cli.json("watch", "--once", ...args);
  await expect
    .poll(() => look())
    .toMatchObject({ namespace: "", hour: { claims: "2", granted: "2", fenced: "0" } });
  expect(await look()).toMatchObject({
    ambiguousRecords: 1,
    hasMoreAmbiguous: false,
    ambiguousSince: expect.stringMatching(/Z$/),
    jobs: [{ kind: "KIND_RESTAMP", namespace: "payouts" }],
  });
  expect(await look("charges")).toMatchObject({ hour: { claims: "1" }, ambiguousRecords: 0, jobs: [] });
  const { stdout } = await cli("watch", "--once", "payouts");
  expect(stdout).toMatch(
    /this hour 1 claims: 1 granted, .*; ambiguous records 1 since \d{4}-.*Z\n {2}job \d+ waiting: /,
  );
});

test("watch looks again until Ctrl-C, also while the service is unreachable", async () => {
  const { adminKey } = await withAmbiguous();
  const proxy = await startTcpProxy(world().server.grpcPort);
  onTestFinished(() => proxy.close());
  const watch = cliFor({ grpcPort: proxy.port }, adminKey).start("watch", "--interval", "1s", "--json");
  const lines = () => watch.printed.stdout.split("\n").filter((line) => JSON.parse(line || "null"));
  await expect.poll(() => lines().length, WAIT).toBeGreaterThan(1);
  proxy.setMode("refuse");
  await expect.poll(() => watch.printed.stderr, WAIT).toContain('"exitCode":3');
  const before = lines().length;
  proxy.setMode("forward");
  await expect.poll(() => lines().length, WAIT).toBeGreaterThan(before);
  watch.interrupt();
  expect(await watch.ended).toBe("SIGINT");
});

test("watch ends if its only look fails, or if the key is refused", async () => {
  expect(await cliFor({ grpcPort: 1 }, "ow_any")("watch", "--once")).toMatchObject({ exit: 3, stdout: "" });
  const wrong = cliFor(world().server, "ow_0000000000000000_wrong");
  expect(await wrong("watch")).toMatchObject(failed(1, "CREDENTIAL_INVALID"));
  expect(await wrong("watch", "--interval", "10ms")).toMatchObject(failed(2, "1s to 1h"));
});
