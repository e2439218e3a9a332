import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { containersOf } from "../support/chart/lint-manifests.ts";
import { type KubernetesObject, parseObjects } from "../support/chart/render.ts";
import { installChartTools } from "../support/chart/tools.ts";
import { CHART } from "../support/chart/values.ts";
import { readRepositoryFile } from "../support/deploy/expressions.ts";
import { serverProblem } from "../support/pages/onceward.ts";
import { commandsOf, type Words } from "../support/pages/shell.ts";
import { firstBlock } from "../support/processes/readme.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TIMEOUT_MS = 120_000;
const PAGE = "deploy/helm/onceward/README.md";

const tools = await installChartTools();

/** Returns what Helm prints for the page's `install`: the objects, and the notes after them. */
async function install(words: Words): Promise<{ objects: readonly KubernetesObject[]; notes: string }> {
  const [release = "", , ...options] = words.slice(2);
  const args = ["install", release, CHART, ...options, "--dry-run=client"];
  const { stdout } = await run(tools?.helm ?? "", args, { timeout: TIMEOUT_MS, maxBuffer: 2 ** 24 });
  const [, manifest = "", notes = ""] = /^MANIFEST:\n([\s\S]*)^NOTES:\n([\s\S]*)/m.exec(stdout) ?? [];
  return { objects: parseObjects(manifest), notes };
}

/** Returns the commands of the page that begin with some words. */
async function pageCommands(...start: readonly string[]): Promise<readonly Words[]> {
  const commands = commandsOf(await firstBlock(PAGE, "sh"));
  return commands.filter((words) => start.every((word, index) => words[index] === word));
}

describe.runIf(tools)("the first commands of the chart's page", () => {
  test("install the repository's chart with the page's Secret and image", async () => {
    const [helm = []] = await pageCommands("helm", "install");
    expect(resolve(ROOT, helm[3] ?? "")).toBe(resolve(CHART));
    const { objects } = await install(helm);
    const pod = objects.find(({ kind }) => kind === "Deployment") as KubernetesObject;

    const [secret = []] = await pageCommands("kubectl", "create", "secret", "generic");
    const keys = secret.flatMap((word) => [...(/^--from-literal=(\w+)=/.exec(word) ?? [])].slice(1));
    const read = JSON.stringify(pod.spec.template.spec.volumes);
    const named = [...read.matchAll(/"secret":\{.*?"name":"([^"]+)"/g)].map(([, name]) => name);
    expect(new Set(named)).toEqual(new Set([secret[4]]));
    const readKeys = [...read.matchAll(/"key":"(\w+)"/g)].map(([, key]) => key);
    expect(new Set(readKeys)).toEqual(new Set(keys));

    const [build = []] = await pageCommands("docker", "build");
    const [push = []] = await pageCommands("docker", "push");
    const tag = build[build.indexOf("--tag") + 1] ?? "";
    expect(push[2]).toBe(tag);
    const { appVersion } = Object.fromEntries(
      [...readRepositoryFile("deploy/helm/onceward/Chart.yaml").matchAll(/^(\w+): "?([^"\n]*)"?$/gm)].map(
        ([, key, value]) => [key, value],
      ),
    );
    for (const { image } of containersOf(pod)) expect(image).toBe(tag.replace("VERSION", String(appVersion)));
  });

  test("print commands for the Deployment and the program that the chart installs", async () => {
    const [helm = []] = await pageCommands("helm", "install");
    const { objects, notes } = await install(helm);
    const deployments = objects.flatMap(({ kind, metadata }) =>
      kind === "Deployment" ? [`deployment/${metadata.name}`] : [],
    );
    const commands = commandsOf(
      [...notes.matchAll(/^ {2}(kubectl (?:.*\\\n)*.*)$/gm)].map(([, command]) => command).join("\n"),
    );
    expect(commands.map((words) => words.slice(3, 5).join(" "))).toEqual([
      "rollout status",
      `exec ${deployments[0]}`,
    ]);
    for (const words of commands) expect(deployments).toContain(words.find((word) => word.includes("/")));
    const [node, program, ...args] = commands[1]?.slice((commands[1]?.indexOf("--") ?? 0) + 1) ?? [];
    expect([node, program, serverProblem(args)]).toEqual(["node", "server/dist/main.js", undefined]);
  });

  test("make pods that the runbook's kubectl logs selects, and no others", async () => {
    const [, selector = ""] =
      /kubectl logs --selector (\S+)/.exec(readRepositoryFile("deploy/runbook.md")) ?? [];
    const [label = "", value] = selector.split("=");
    const [helm = []] = await pageCommands("helm", "install");
    const { objects } = await install(helm);
    const pods = objects.filter(({ spec }) => spec?.template !== undefined);
    expect(pods.map(({ spec }) => spec.template.metadata.labels[label])).toEqual(pods.map(() => value));
  });
});
