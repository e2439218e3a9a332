import { execFile, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { installChartTools } from "../support/chart/tools.ts";
import { CHART } from "../support/chart/values.ts";
import { freePort } from "../support/redis/redis.ts";

const run = promisify(execFile);
/** Go compiles Kubernetes once: many minutes, and an hour on a busy machine. */
const BUILD_TIMEOUT_MS = 5_400_000;
const TIMEOUT_MS = 300_000;
const VERSION = "37.2";
/** A folder for the program; `etcd` is Debian's etcd-server. */
const FOLDER = process.env.ONCEWARD_TEST_KUBERNETES ?? "";
if (FOLDER === "")
  process.stderr.write("Tests on Kubernetes are skipped: ONCEWARD_TEST_KUBERNETES names no folder.\n");

const MAIN = `package main

import (
	"os"

	"k8s.io/component-base/cli"
	server "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	command := server.NewAPIServerCommand()
	if os.Args[1] == "controllers" {
		command = controllers.NewControllerManagerCommand()
	}
	command.SetArgs(os.Args[2:])
	os.Exit(cli.Run(command))
}
`;

/** Returns the API server and the controllers of Kubernetes as one program, from their Go module, whose parts are modules, too. */
async function buildKubernetes(): Promise<string> {
  const program = join(FOLDER, "kubernetes");
  if (existsSync(program)) return program;
  mkdirSync(join(FOLDER, "src"), { recursive: true });
  const go = (...args: readonly string[]) =>
    run("nice", ["go", ...args], {
      ...{ cwd: join(FOLDER, "src"), timeout: BUILD_TIMEOUT_MS, maxBuffer: 2 ** 26 },
      env: { ...process.env, CGO_ENABLED: "0" },
    });
  const { stdout } = await go("mod", "download", "-json", `k8s.io/kubernetes@v1.${VERSION}`);
  const { stdout: mod } = await run("grep", ["=> ./staging", JSON.parse(stdout).GoMod]);
  const parts = mod.replaceAll(/=> \S+\/src\/(\S+)/g, `=> $1 v0.${VERSION}`);
  writeFileSync(
    join(FOLDER, "src/go.mod"),
    `module kubernetes\n\nrequire k8s.io/kubernetes v1.${VERSION}\n\nreplace (\n${parts})\n`,
  );
  writeFileSync(join(FOLDER, "src/main.go"), MAIN);
  await go("mod", "tidy");
  const version = `-s -w -X k8s.io/component-base/version.gitVersion=v1.${VERSION}`;
  await go("build", `-ldflags=${version}`, "-o", program, ".");
  return program;
}

describe.runIf(FOLDER !== "")("a real API server, with Kubernetes' controllers and no nodes", () => {
  const ending = new AbortController();
  let dir: string;
  let server: string;
  let helm: (...args: readonly string[]) => Promise<{ stdout: string }>;
  let refused: readonly string[] = [];

  // biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes.
  async function api(method: string, path: string, body?: object): Promise<any> {
    const type = method === "PATCH" ? "application/strategic-merge-patch+json" : "application/json";
    const headers = { authorization: "Bearer secret", "content-type": type };
    const response = await fetch(server + path, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    return await response.json();
  }

  /** In place of nodes: pods become ready, and those that end succeed. */
  async function runPods(): Promise<void> {
    for (; !ending.signal.aborted; await delay(200)) {
      for (const { metadata, spec, status } of (await api("GET", "/api/v1/namespaces/shop/pods")).items) {
        if (status.phase !== "Pending" || metadata.deletionTimestamp !== undefined) continue;
        const ends = spec.restartPolicy !== "Always";
        const lastTransitionTime = new Date().toISOString();
        const conditions = [{ type: "Ready", status: ends ? "False" : "True", lastTransitionTime }];
        const changed = { status: { phase: ends ? "Succeeded" : "Running", conditions } };
        await api("PATCH", `/api/v1/namespaces/shop/pods/${metadata.name}/status`, changed).catch(() => {});
      }
      const { items } = await api("GET", "/api/v1/namespaces/shop/events");
      const failed = items.filter(({ reason }: { reason: string }) => reason === "FailedCreate");
      refused = failed.map(({ message }: { message: string }) => message);
    }
  }

  beforeAll(async () => {
    const program = await buildKubernetes();
    const tools = await installChartTools();
    dir = await mkdtemp(join(tmpdir(), "ow-kubernetes-"));
    const [port, client, peer] = [await freePort(), await freePort(), await freePort()];
    const { signal } = ending;
    const start = (file: string, args: readonly string[]) =>
      spawn(file, args, { stdio: "ignore", signal, killSignal: "SIGKILL" }).on("error", () => {});
    const { privateKey, publicKey } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      privateKeyEncoding: { type: "pkcs1", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    const file = (name: string, text: string) => {
      writeFileSync(join(dir, name), text);
      return join(dir, name);
    };
    server = `https://127.0.0.1:${port}`;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    const kubeconfig = file(
      "kubeconfig",
      JSON.stringify({
        ...{ apiVersion: "v1", kind: "Config", "current-context": "t" },
        clusters: [{ name: "t", cluster: { server, "insecure-skip-tls-verify": true } }],
        users: [{ name: "t", user: { token: "secret" } }],
        contexts: [{ name: "t", context: { cluster: "t", user: "t", namespace: "shop" } }],
      }),
    );
    const [etcd, etcdPeer] = [client, peer].map((each) => `http://127.0.0.1:${each}`);
    start("etcd", [
      ...[`--data-dir=${dir}/etcd`, `--listen-peer-urls=${etcdPeer}`],
      ...[`--listen-client-urls=${etcd}`, `--advertise-client-urls=${etcd}`],
    ]);
    const key = file("private.pem", privateKey);
    start(program, [
      ...["server", `--etcd-servers=${etcd}`, "--bind-address=127.0.0.1", `--secure-port=${port}`],
      ...[
        `--cert-dir=${dir}/certs`,
        `--token-auth-file=${file("tokens", "secret,admin,1,system:masters\n")}`,
      ],
      ...["--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"],
      ...["--service-account-issuer=https://t", `--service-account-signing-key-file=${key}`],
      `--service-account-key-file=${file("public.pem", publicKey)}`,
    ]);
    await vi.waitFor(() => api("GET", "/version"), { timeout: 60_000, interval: 500 });
    start(program, [
      ...["controllers", `--kubeconfig=${kubeconfig}`, `--service-account-private-key-file=${key}`],
      ...["--leader-elect=false", "--secure-port=0"],
    ]);
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await api("POST", "/api/v1/namespaces", { metadata: { name: "shop", labels } });
    await api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
      metadata: { name: "onceward" },
      value: 1,
    });
    await api("POST", "/api/v1/namespaces/shop/serviceaccounts", { metadata: { name: "payments" } });
    for (const kind of ["ServiceMonitor", "PrometheusRule"]) {
      const [plural, group] = [`${kind.toLowerCase()}s`, "monitoring.coreos.com"];
      const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
      const versions = [{ name: "v1", served: true, storage: true, schema }];
      await api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        metadata: { name: `${plural}.${group}` },
        spec: { group, scope: "Namespaced", names: { plural, kind }, versions },
      });
    }
    helm = (...args) =>
      run(tools?.helm ?? "helm", [...args, "--kubeconfig", kubeconfig, "--namespace", "shop"]);
    runPods().catch(() => {});
  }, BUILD_TIMEOUT_MS);

  afterAll(async () => {
    ending.abort();
    await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });

  test.each(readdirSync(join(CHART, "ci")))(
    "installs, upgrades, tests and rolls back %s",
    async (name) => {
      const release = name.replace(".yaml", "");
      const quickly = ["--set", "rollout.minReadySeconds=1", "--wait", "--timeout", "200s"];
      const chart = [release, CHART, "--values", join(CHART, "ci", name)];
      await helm("install", ...chart, "--dry-run=server");
      await helm("install", ...chart, ...quickly);
      await helm("upgrade", ...chart, ...quickly, "--set", "config.ONCEWARD_LOG_LEVEL=warn");
      expect((await helm("test", release)).stdout).toMatch(/Phase:\s+Succeeded/);
      await helm("rollback", release, "1", "--wait");
      await helm("uninstall", release, "--wait");
      expect(refused).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "refuses a pod that the restricted standard does not allow",
    async () => {
      const values = [
        "--values",
        join(CHART, "ci/minimal.yaml"),
        "--set",
        "extraContainers[0].name=a,extraContainers[0].image=a",
      ];
      await helm("install", "unsafe", CHART, ...values);
      await expect.poll(() => refused.join(), { timeout: 60_000 }).toContain("violates PodSecurity");
    },
    TIMEOUT_MS,
  );
});
