import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { type BackgroundProgram, startProgram } from "../support/deploy/background-program.ts";
import { ALERTS } from "../support/deploy/expressions.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import { codeBlocks } from "../support/processes/readme.ts";
import { freePort } from "../support/redis/redis.ts";

const run = promisify(execFile);
const CONFIG = fileURLToPath(new URL("../../deploy/alertmanager/alertmanager.yml", import.meta.url));
/** On a busy machine too. */
const TIMEOUT_MS = 30_000;

type Labels = Readonly<Record<string, string>>;

interface Group {
  readonly labels: Labels;
  readonly receiver: { readonly name: string };
  readonly alerts: readonly {
    readonly labels: Labels;
    readonly status: { readonly inhibitedBy: string[] };
  }[];
}

describeWithPrograms(["prometheus-alertmanager"], "Alertmanager", () => {
  let dir: string;
  let url: string;
  let program: BackgroundProgram;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "ow-alertmanager-"));
    const address = `127.0.0.1:${await freePort()}`;
    url = `http://${address}/api/v2`;
    program = await startProgram("prometheus-alertmanager", [
      `--config.file=${CONFIG}`,
      `--storage.path=${dir}`,
      `--web.listen-address=${address}`,
      "--cluster.listen-address=",
    ]);
    const isReady = () =>
      fetch(`http://${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await vi.waitUntil(isReady, { timeout: TIMEOUT_MS });
  });

  afterAll(async () => {
    await program?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  /** Sends alerts of a job, and returns the notifications: the groups, with the alerts that are not inhibited. */
  async function notificationsOf(job: string, alerts: readonly [alert: string, labels?: Labels][]) {
    const sent = alerts.map(([alertname, labels = {}]) => {
      const rule = ALERTS.find(({ alert }) => alert === alertname);
      return { labels: { ...rule?.labels, ...labels, alertname, job } };
    });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/alerts`, { method: "POST", headers, body: JSON.stringify(sent) });
    expect(answer.status).toBe(200);
    const groupsOf = async () => {
      const groups = (await (await fetch(`${url}/alerts/groups`)).json()) as readonly Group[];
      return groups.filter(({ labels }) => labels.job === job);
    };
    const countOf = (groups: readonly Group[]) => groups.flatMap(({ alerts }) => alerts).length;
    await vi.waitUntil(async () => countOf(await groupsOf()) === sent.length, { timeout: TIMEOUT_MS });
    return (await groupsOf()).flatMap(({ labels, receiver, alerts }) => {
      const told = alerts.filter(({ status }) => status.inhibitedBy.length === 0);
      return told.length === 0 ? [] : [`${receiver.name} ${labels.component}: ${told.length}`];
    });
  }

  const tasks = ["heartbeat", "store_usage", "store_key_use", "store_totals", "count_records", "record_jobs"];
  const failing = tasks.map((task): [string, Labels] => ["OncewardBackgroundTaskFails", { task }]);

  test("the route of the chart's page chooses the receiver by the team's label and the severity", async () => {
    const [{ route }] = (await codeBlocks("deploy/helm/onceward/README.md", "yaml"))
      .map((block) => parse(block))
      .filter((block) => block.route !== undefined);
    const names = ["others", "payments-page", "payments-ticket"];
    const config = { route: { receiver: "others", ...route }, receivers: names.map((name) => ({ name })) };
    const file = join(dir, "team.yml");
    await writeFile(file, JSON.stringify(config));
    const receiverOf = async (...labels: string[]) => {
      const args = ["config", "routes", "test", `--config.file=${file}`, ...labels];
      return (await run("amtool", args, { timeout: TIMEOUT_MS })).stdout.trim();
    };
    expect(await receiverOf("team=payments", "severity=page")).toBe("payments-page");
    expect(await receiverOf("team=payments", "severity=ticket")).toBe("payments-ticket");
    expect(await receiverOf("severity=page")).toBe("others");
  });

  test("tasks that fail are one ticket for each installation", async () => {
    expect(await notificationsOf("onceward-a", failing)).toEqual([`ticket tasks: ${tasks.length}`]);
    expect(await notificationsOf("onceward-b", failing)).toEqual([`ticket tasks: ${tasks.length}`]);
  });

  test("a database that is unreachable is one page, with everything that fails because of it", async () => {
    const told = await notificationsOf("onceward-c", [
      ["OncewardDatabaseUnreachable"],
      ["OncewardPoolSaturated"],
      ["OncewardErrorBudgetBurnFast", { sli: "operations" }],
      ["OncewardErrorBudgetBurnSlow", { sli: "operations" }],
      ["OncewardClaimLatencyBurnFast"],
      ...failing,
    ]);
    expect(told).toEqual(["page database: 1"]);
    // The other installation's alerts are its own.
    expect(await notificationsOf("onceward-d", [["OncewardPoolSaturated"]])).toEqual(["ticket database: 1"]);
  });

  test("while the error budget pages, its ticket is silent; another component's is not", async () => {
    const told = await notificationsOf("onceward-e", [
      ["OncewardErrorBudgetBurnFast", { sli: "calls" }],
      ["OncewardErrorBudgetBurnSlow", { sli: "calls" }],
      ["OncewardRedisBypassed"],
    ]);
    expect(told.toSorted()).toEqual(["page errors: 1", "ticket redis: 1"]);
  });

  test("an installation without replicas is one page", async () => {
    const told = await notificationsOf("onceward-f", [
      ["OncewardAllReplicasMissing"],
      ["OncewardReplicaMissing", { instance: "a" }],
      ["OncewardReplicaMissing", { instance: "b" }],
      ["OncewardErrorBudgetBurnFast", { sli: "calls" }],
    ]);
    expect(told).toEqual(["page replicas: 1"]);
  });
});
