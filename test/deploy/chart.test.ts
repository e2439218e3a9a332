import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";
import { createManagementServer } from "../../server/src/transport/management/server.ts";
import { containersOf, lintManifests } from "../support/chart/lint-manifests.ts";
import { type KubernetesObject, parseObjects, renderText, valuesFile } from "../support/chart/render.ts";
import { type ChartTools, installChartTools, KUBERNETES_VERSIONS } from "../support/chart/tools.ts";
import { CHART } from "../support/chart/values.ts";
import { startProxyCommand } from "../support/deploy/proxy-command.ts";
import { codeBlocks } from "../support/processes/readme.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 120_000;
const SERVICE_ROLE = fileURLToPath(new URL("../../deploy/postgres/service-role.sql", import.meta.url));
const RULES = fileURLToPath(new URL("../../deploy/prometheus/rules.yml", import.meta.url));
const ROUTES = fileURLToPath(new URL("../../deploy/http-proxy/routes.yaml", import.meta.url));
/** Objects of the Prometheus operator: the package of schemas has none for them. */
const WITHOUT_SCHEMA = ["ServiceMonitor", "PrometheusRule"];

const tools = await installChartTools();
const { helm, kubeconform, schemas } = tools ?? ({} as ChartTools);
const readSet = (name: string) => parse(readFileSync(join(CHART, "ci", name), "utf8"));
const MINIMAL = readSet("minimal.yaml");
const valueSets = readdirSync(join(CHART, "ci"));

/** By a set of values: what Helm renders. */
const rendered = new Map<string, Promise<string>>();

function textOf(name: string): Promise<string> {
  const text = rendered.get(name) ?? renderText(helm, join(CHART, "ci", name));
  rendered.set(name, text);
  return text;
}

/** Returns the objects of a set of values. */
async function objectsOf(name: string): Promise<readonly KubernetesObject[]> {
  return parseObjects(await textOf(name));
}

/** Returns the objects of values. */
async function objectsWith(values: object): Promise<readonly KubernetesObject[]> {
  return parseObjects(await renderText(helm, await valuesFile(values)));
}

/** Returns each Ingress' host and the name of the port to which it leads, which a Service of the release has. */
function ingressesOf(
  objects: readonly KubernetesObject[],
): readonly (readonly [host: string, port: string])[] {
  return objects
    .filter(({ kind }) => kind === "Ingress")
    .map(({ spec }) => {
      const [{ host, http }] = spec.rules;
      const { name, port } = http.paths[0].backend.service;
      const service = objects.find(({ kind, metadata }) => kind === "Service" && metadata.name === name);
      expect(service?.spec.ports).toContainEqual(expect.objectContaining(port));
      return [host, port.name] as const;
    });
}

describe.runIf(tools).each(valueSets)("the chart with %s", (name) => {
  test("passes helm lint", async () => {
    const args = ["lint", "--strict", "--values", join(CHART, "ci", name), CHART];
    const { stdout } = await run(helm, args, { timeout: TIMEOUT_MS });
    expect(stdout).toContain("1 chart(s) linted, 0 chart(s) failed");
    expect(stdout).not.toContain("[WARNING]");
  });

  test.each(KUBERNETES_VERSIONS)("is valid by the strict schemas of Kubernetes %s", async (version) => {
    const text = await textOf(name);
    const objects = parseObjects(text);
    const skipped = objects.filter(({ kind }) => WITHOUT_SCHEMA.includes(kind)).length;
    expect(await conform(text, version)).toMatchObject({
      summary: { valid: objects.length - skipped, invalid: 0, errors: 0, skipped },
    });
  });

  test("has hardened pods, known settings, no secret in plain text, and selectors that match", async () => {
    expect(lintManifests(await objectsOf(name))).toEqual([]);
  });
});

describe.runIf(tools)("the chart", () => {
  test("probes paths that the management port answers, with and without TLS", async () => {
    const management = createManagementServer({
      metrics: createMetrics("0.0.0"),
      unreadyReasons: () => [],
      tls: undefined,
    });
    const port = await management.listen("127.0.0.1", 0);
    onTestFinished(() => management.close());
    for (const [name, scheme] of [
      ["minimal.yaml", "HTTP"],
      ["production.yaml", "HTTPS"],
    ] as const) {
      const [deployment] = (await objectsOf(name)).filter(({ kind }) => kind === "Deployment");
      const [server] = deployment?.spec.template.spec.containers ?? [];
      const probes = [server.startupProbe, server.livenessProbe, server.readinessProbe];
      expect(probes.map(({ httpGet }) => httpGet.path)).toEqual(["/livez", "/livez", "/readyz"]);
      for (const { httpGet } of probes) {
        expect(httpGet.scheme).toBe(scheme);
        expect((await fetch(`http://127.0.0.1:${port}${httpGet.path}`)).status).toBe(200);
      }
    }
  });

  test.each([
    ["as the sidecar of the service's containers", {}, ["http-proxy", "charges"]],
    ["in pods of its own", { containers: [], upstream: "https://charges.example:3443" }, ["http-proxy"]],
  ])("runs an HTTP proxy %s, whose command line the program takes", async (_, changes, names) => {
    const set = readSet("http-proxy.yaml");
    const values = { ...set, httpProxy: { ...set.httpProxy, ...changes } };
    const objects = await objectsWith(values);
    expect(lintManifests(objects)).toEqual([]);
    const named = objects.filter(({ metadata }) => metadata.name === "rel-onceward-http-proxy");
    const deployment = named.find(({ kind }) => kind === "Deployment") as KubernetesObject;
    const containers = containersOf(deployment);
    expect(containers.map(({ name }) => name)).toEqual(names);
    const [container] = containers;
    expect(container.restartPolicy).toBe(names.length > 1 ? "Always" : undefined);
    expect(container.args).toContain("--address=http://rel-onceward.default.svc:50051");
    const text = named.find(({ kind }) => kind === "ConfigMap")?.data?.["routes.yaml"] ?? "";
    const proxy = await startProxyCommand({
      command: [...container.command, ...container.args],
      files: { "/run/onceward/api_key": "ow_a_b", "/run/onceward/routes.yaml": text },
    });
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      const { path } = container[probe].httpGet;
      expect((await fetch(`http://127.0.0.1:${proxy.managementPort}${path}`)).status).toBe(200);
    }
    expect(await proxy.stop()).toBe(0);
  });

  test("has the page's sidecar for another chart's pods, valid and with a working command line", async () => {
    const [fragment = ""] = (await codeBlocks("deploy/README.md", "yaml")).filter((block) =>
      block.includes("onceward-http-proxy"),
    );
    const containers = [{ name: "service", image: "service" }];
    const spec = { ...parse(fragment), containers };
    const pod = stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec });
    for (const version of KUBERNETES_VERSIONS)
      expect(await conform(pod, version)).toMatchObject({ summary: { valid: 1, invalid: 0, errors: 0 } });

    const deployment = (await objectsOf("http-proxy.yaml")).find(
      ({ kind, metadata }) => kind === "Deployment" && metadata.name === "rel-onceward-http-proxy",
    ) as KubernetesObject;
    const [own] = containersOf(deployment);
    const [sidecar] = spec.initContainers;
    const portsOf = ({ ports }: typeof own) =>
      ports.map((port: { containerPort: number }) => port.containerPort);
    const { restartPolicy, securityContext, resources } = own;
    expect(sidecar).toMatchObject({
      restartPolicy,
      securityContext,
      resources: { limits: resources.limits },
    });
    expect(portsOf(sidecar)).toEqual(portsOf(own));
    expect(spec.terminationGracePeriodSeconds).toBe(
      deployment.spec.template.spec.terminationGracePeriodSeconds,
    );

    const [key, address] = ["ONCEWARD_API_KEY", "ONCEWARD_ADDRESS"].map((name) =>
      sidecar.env.find((variable: { name: string }) => variable.name === name),
    );
    expect(key.valueFrom.secretKeyRef).toMatchObject({ name: expect.any(String), key: expect.any(String) });
    const routes = `${sidecar.volumeMounts[0].mountPath}/routes.yaml`;
    expect(spec.volumes[0].name).toBe(sidecar.volumeMounts[0].name);
    const proxy = await startProxyCommand({
      command: ["sh", "-c", 'exec node clients/cli/dist/main.js "$@"', "onceward", ...sidecar.args],
      env: { ONCEWARD_ADDRESS: address.value, ONCEWARD_API_KEY: "ow_a_b" },
      files: { [routes]: readFileSync(ROUTES, "utf8") },
    });
    for (const probe of ["livenessProbe", "readinessProbe"]) {
      const { path } = sidecar[probe].httpGet;
      expect((await fetch(`http://127.0.0.1:${proxy.managementPort}${path}`)).status).toBe(200);
    }
    expect(await proxy.stop()).toBe(0);
  });

  test("takes its README's values; the Ingress leads browsers from the console to the release", async () => {
    const blocks = (await codeBlocks("deploy/helm/onceward/README.md", "yaml")).map((block) => parse(block));
    // The other block is a route of Alertmanager.
    const shown = blocks.filter((block) => block.route === undefined);
    expect(shown).toHaveLength(3);
    for (const { secrets, ...values } of shown) {
      const own = { ...values, fullnameOverride: "onceward", secrets: { ...MINIMAL.secrets, ...secrets } };
      const objects = await objectsWith(own);
      expect(lintManifests(objects)).toEqual([]);
      for (const [host] of ingressesOf(objects)) {
        expect(`https://${host}`).toBe(values.config.ONCEWARD_CONSOLE_ORIGIN);
      }
    }
    const withIngress = shown.find(({ extraObjects }) => extraObjects !== undefined);
    expect(withIngress.extraObjects).toMatchObject([{ kind: "Ingress" }]);
    expect(Object.keys(withIngress.config)).toContain("ONCEWARD_CONSOLE_OIDC_CLIENT_ID");
  });

  test("has an Ingress for each of the HTTP and gRPC ports, and alerts for a team", async () => {
    const set = readSet("ingress.yaml");
    const objects = await objectsWith({ ...set, fullnameOverride: "onceward" });
    expect(ingressesOf(objects)).toEqual([
      [new URL(set.config.ONCEWARD_CONSOLE_ORIGIN).host, "http"],
      ["grpc.onceward.example", "grpc"],
    ]);
    const rules = objects
      .find(({ kind }) => kind === "PrometheusRule")
      ?.spec.groups.flatMap(({ rules }: { rules: { alert?: string; labels?: object }[] }) => rules);
    for (const { labels } of rules.filter(({ alert }: { alert?: string }) => alert !== undefined)) {
      expect(labels).toMatchObject({ team: "payments" });
    }
  });

  test("has no HTTP proxy unless it is wanted, and admits it to the server where callers are named", async () => {
    expect(JSON.stringify(await objectsOf("production.yaml"))).not.toMatch(/"http-proxy"\s*:|-http-proxy"/);
    const policies = (await objectsOf("http-proxy.yaml")).filter(({ kind }) => kind === "NetworkPolicy");
    const peersOf = (name: string) =>
      policies.find(({ metadata }) => metadata.name === name)?.spec.ingress[0].from;
    const own = { podSelector: { matchExpressions: [{ operator: "In", values: ["http-proxy", "test"] }] } };
    expect(peersOf("rel-onceward")).toMatchObject([{}, own]);
    expect(peersOf("rel-onceward-http-proxy")).toEqual([
      { namespaceSelector: { matchLabels: { shop: "true" } } },
    ]);
  });

  test("gives the owner's URL of Postgres to migrations only", async () => {
    for (const name of ["production.yaml", "job-migrations.yaml"]) {
      const holders = (await objectsOf(name))
        .filter(({ kind }) => kind === "Deployment" || kind === "Job")
        .flatMap(containersOf)
        .filter(({ env }) =>
          env.some((entry: { name: string }) => entry.name === "DATABASE_DIRECT_URL_FILE"),
        );
      expect(holders.map(({ args }) => args)).toEqual([["migrate"]]);
    }
  });

  test("runs migrations in one place: an init container, a Job, or none", async () => {
    const places = async (name: string) =>
      (await objectsOf(name))
        .filter((object) => object.spec?.template !== undefined)
        .flatMap((object) => containersOf(object).map(({ args, name }) => `${object.kind} ${args ?? name}`))
        .sort();
    expect(await places("minimal.yaml")).toEqual(["Deployment migrate", "Deployment serve"]);
    expect(await places("job-migrations.yaml")).toEqual([
      "Deployment serve",
      "Job migrate",
      "Job service-role",
    ]);
    expect(await places("external.yaml")).toEqual(["Deployment serve"]);
  });

  test("distributes the records of Citus in the Job", async () => {
    const values = { ...MINIMAL, migrations: { mode: "job", job: { citus: true } } };
    const objects = await objectsWith(values);
    const [migrate] = objects.filter(({ kind }) => kind === "Job").flatMap(containersOf);
    expect(migrate?.args).toEqual(["migrate", "--citus"]);
  });

  test.each([
    ["initContainer", "Deployment"],
    ["job", "Job"],
  ])("makes the replicas' role after the migration, with mode %s in the %s", async (mode, kind) => {
    const set = readSet("job-migrations.yaml");
    const objects = await objectsWith({ ...set, migrations: { mode } });
    const pod = objects.find((object) => object.kind === kind);
    const names = pod === undefined ? [] : containersOf(pod).map(({ name }) => name);
    expect(names.slice(0, 2)).toEqual(["migrate", "service-role"]);
    const role = pod && containersOf(pod)[1];
    // It holds no secret but the owner's URL and the password.
    expect(role.volumeMounts.map(({ name }: { name: string }) => name)).toEqual(["service-role"]);
    const volume = pod?.spec.template.spec.volumes.find(
      ({ name }: { name: string }) => name === "service-role",
    );
    const paths = volume.projected.sources.flatMap(({ secret }: { secret?: { items: readonly object[] } }) =>
      secret === undefined ? [] : secret.items,
    );
    expect(paths).toEqual([
      { key: "DATABASE_DIRECT_URL", path: "owner_url" },
      { key: "SERVICE_PASSWORD", path: "password" },
    ]);
    const text = objects.find(({ metadata }) => metadata.name === "rel-onceward-service-role")?.data;
    expect(text?.["service-role.sql"]?.trim()).toBe(readFileSync(SERVICE_ROLE, "utf8").trim());
  });

  test("labels all objects and pods with commonLabels, but selects by none of them", async () => {
    const set = readSet("observability.yaml");
    const values = { ...set, commonLabels: { "cost-center": "42" }, dashboards: { enabled: true } };
    const objects = await objectsWith(values);
    const pods = objects.flatMap(({ spec }) => (spec?.template === undefined ? [] : [spec.template]));
    for (const { metadata } of [...objects, ...pods]) expect(metadata.labels["cost-center"]).toBe("42");
    expect(pods.length).toBeGreaterThan(0);
    expect(JSON.stringify(objects.map(({ spec }) => spec?.selector ?? {}))).not.toContain("cost-center");
  });

  test("has each dashboard of deploy/grafana in a ConfigMap for Grafana's sidecar, if wanted", async () => {
    const maps = async (values: object) => {
      const objects = await objectsWith({ ...MINIMAL, ...values });
      return objects.filter(({ kind }) => kind === "ConfigMap");
    };
    expect(await maps({})).toEqual([]);
    const found = await maps({ dashboards: { enabled: true } });
    expect(found.map(({ metadata }) => metadata.labels.grafana_dashboard)).toEqual(["1", "1"]);
    for (const name of ["service", "tenants"]) {
      const map = found.find(({ metadata }) => metadata.name === `rel-onceward-dashboard-${name}`);
      const text = readFileSync(new URL(`../../deploy/grafana/${name}.json`, import.meta.url), "utf8");
      expect(map?.data).toEqual({ [`onceward-${name}.json`]: text });
    }
  });

  test("renders no label and no annotation twice; those of an object replace commonLabels", async () => {
    const own = { labels: { team: "own" }, enabled: true };
    const container = { "kubectl.kubernetes.io/default-container": "logs" };
    const file = await valuesFile({
      ...MINIMAL,
      commonLabels: { team: "common" },
      podLabels: { team: "own" },
      podAnnotations: container,
      serviceMonitor: own,
      prometheusRule: own,
      dashboards: own,
    });
    const documents = parseAllDocuments(await renderText(helm, file));
    expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
    const objects: KubernetesObject[] = documents.map((each) => each.toJS()).filter((each) => each !== null);
    const teamOf = (kind: string) => objects.find((each) => each.kind === kind)?.metadata.labels.team;
    const kinds = ["Service", "ServiceMonitor", "PrometheusRule", "ConfigMap"];
    expect(kinds.map(teamOf)).toEqual(["common", "own", "own", "own"]);
    const pod = objects.find(({ kind }) => kind === "Deployment")?.spec.template.metadata;
    expect([pod.labels.team, pod.annotations]).toEqual(["own", expect.objectContaining(container)]);
  });

  test("has a pod for helm test, which doctor's errors fail, and a Service that does not answer", async () => {
    const objects = await objectsOf("production.yaml");
    const pod = objects.find(({ kind }) => kind === "Pod") as KubernetesObject;
    // As the pod of a Job it is held to what other pods are.
    const job = { ...pod, kind: "Job", spec: { template: pod } };
    expect(lintManifests([...objects, job])).toEqual([]);
    const [doctor, service] = pod.spec.containers;
    const deployment = objects.find(({ kind }) => kind === "Deployment") as KubernetesObject;
    const { env, volumeMounts } = deployment.spec.template.spec.containers[0];
    expect(doctor).toMatchObject({ env, volumeMounts });
    const [shell, option, line] = doctor.command;
    const ended = (code: number) =>
      run(shell, [option, line.replace("node server/dist/main.js doctor", `(exit ${code})`)]);
    await Promise.all([0, 1].map(ended));
    for (const code of [2, 3]) await expect(ended(code)).rejects.toThrow();

    const [, evaluate, program, name] = service.command;
    expect(objects.filter(({ kind }) => kind === "Service")[0]?.metadata.name).toBe(name);
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const asked = [evaluate, program.replace("50051, 8080", `${port}`), "127.0.0.1"];
    await run(process.execPath, asked);
    server.close();
    await expect(run(process.execPath, asked)).rejects.toThrow("ECONNREFUSED");
  });

  test("replaces, probes, scales and balances as the values say, and slowly down by default", async () => {
    const { rollout, probes, dnsConfig, service } = readSet("external.yaml");
    const { maxSurge, maxUnavailable, ...times } = rollout;
    const objects = await objectsOf("external.yaml");
    const specOf = (kind: string, of = objects) => of.find((object) => object.kind === kind)?.spec;
    const { strategy, template, ...deployment } = specOf("Deployment");
    expect(deployment).toMatchObject(times);
    expect(strategy.rollingUpdate).toEqual({ maxSurge, maxUnavailable });
    expect(template.spec.dnsConfig).toEqual(dnsConfig);
    expect(template.spec.containers[0].startupProbe).toMatchObject({ ...probes.startup, periodSeconds: 2 });
    const { loadBalancerClass, loadBalancerSourceRanges } = service;
    expect(specOf("Service")).toMatchObject({ loadBalancerClass, loadBalancerSourceRanges });
    const { scaleUp } = readSet("production.yaml").autoscaling.behavior;
    const scaleDown = { policies: [{ type: "Pods", value: 1, periodSeconds: 60 }] };
    const scaled = specOf("HorizontalPodAutoscaler", await objectsOf("production.yaml"));
    expect(scaled.behavior).toMatchObject({ scaleUp, scaleDown });
  });

  test("names the Job by version, and differently when its pod changes", async () => {
    const set = readSet("job-migrations.yaml");
    const nameOf = async (changes: object) => {
      const objects = await objectsWith({ ...set, ...changes });
      return objects.find(({ kind }) => kind === "Job")?.metadata.name ?? "";
    };
    const name = await nameOf({});
    expect(name).toMatch(/^rel-onceward-migrate-\d+-\d+-\d+-[0-9a-f]{8}$/);
    expect(await nameOf({})).toBe(name);
    expect(await nameOf({ config: { ONCEWARD_LOG_LEVEL: "debug" } })).not.toBe(name);
    expect(await nameOf({ image: { tag: `2.0.0-${"x".repeat(60)}` } })).toMatch(
      /-migrate-2-0-0-xxxxx-\w{8}$/,
    );
  });

  test("carries the alerts of deploy/prometheus/rules.yml", async () => {
    const objects = await objectsOf("observability.yaml");
    const rule = objects.find(({ kind }) => kind === "PrometheusRule");
    const ofRelease = readFileSync(RULES, "utf8").replaceAll(
      'job=~".*onceward.*"',
      'job="onceward/default/rel-onceward"',
    );
    expect(rule?.spec).toEqual(parse(ofRelease));
    expect(rule?.spec.groups.length).toBeGreaterThan(0);
  });

  test("writes the values of the rules into the alerts", async () => {
    const prometheusRule = {
      enabled: true,
      alertLabels: { team: "payments" },
      runbookUrl: "https://runbooks.example/onceward",
      errorBudget: 0.0005,
      slowClaimBudget: 0.05,
      quotaRefusalsPerSecond: 7,
      certificateDays: 2,
      ambiguousFor: "4h",
    };
    const objects = await objectsWith({ ...MINIMAL, prometheusRule });
    const text = JSON.stringify(objects.find(({ kind }) => kind === "PrometheusRule"));
    const alerts = parse(text).spec.groups.flatMap(({ rules }: { rules: readonly object[] }) => rules);
    for (const { alert, labels, annotations } of alerts) {
      if (alert === undefined) continue;
      expect(labels.team).toBe("payments");
      expect(annotations.runbook_url).toMatch(/^https:\/\/runbooks\.example\/onceward#/);
    }
    for (const part of ["14.4 * 0.0005", "14.4 * 0.05", "[5m])) > 7", "< 2 * 86400", '"for":"4h"'])
      expect(text).toContain(part);
    expect(text).not.toMatch(/@\w+@|\* 0\.001/);
  });

  test("takes files of Vault or of a CSI driver in place of secrets", async () => {
    const extraEnv = ["DATABASE_URL", "ONCEWARD_API_KEY_PEPPER"].map((name) => ({
      name: `${name}_FILE`,
      value: `/vault/secrets/${name}`,
    }));
    const objects = await objectsWith({ extraEnv });
    const [deployment] = objects.filter(({ kind }) => kind === "Deployment");
    for (const container of deployment === undefined ? [] : containersOf(deployment)) {
      expect(container.env).toEqual(expect.arrayContaining(extraEnv));
    }
    expect(deployment).toBeDefined();
  });

  test("has further containers, a lifecycle and further objects as they are given", async () => {
    const route = {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "GRPCRoute",
      metadata: { name: "calls" },
    };
    const values = {
      ...MINIMAL,
      extraContainers: [{ name: "logs", image: "logs" }],
      extraInitContainers: [{ name: "proxy", image: "proxy", restartPolicy: "Always" }],
      lifecycle: { preStop: { sleep: { seconds: 5 } } },
      extraObjects: [route],
    };
    const objects = await objectsWith(values);
    const pod = objects.find(({ kind }) => kind === "Deployment")?.spec.template.spec;
    const names = (containers: readonly { name: string }[]) => containers.map(({ name }) => name);
    expect(names(pod.initContainers)).toEqual(["proxy", "migrate"]);
    expect(names(pod.containers)).toEqual(["server", "logs"]);
    expect(pod.containers[0].lifecycle).toEqual(values.lifecycle);
    expect(objects).toContainEqual(route);
  });

  test("annotates the Service for callers, and the headless one by a value of its own", async () => {
    const service = { annotations: { a: "balancer" }, headlessAnnotations: { a: "headless" } };
    const objects = await objectsWith({ ...MINIMAL, service });
    const found = objects.filter(({ kind }) => kind === "Service").map(({ metadata }) => metadata);
    expect(found).toMatchObject([
      { name: "rel-onceward", annotations: { a: "balancer" } },
      { name: "rel-onceward-headless", annotations: { a: "headless" } },
    ]);
  });

  test("gives replicas a job that the alerts select, for any name of the release", async () => {
    const [, selected = ""] = /\{job=~"([^"]+)"/.exec(readFileSync(RULES, "utf8")) ?? [];
    const set = readSet("observability.yaml");
    const objects = await objectsWith({ ...set, nameOverride: "idempotency", fullnameOverride: "payments" });
    const monitor = objects.find(({ kind }) => kind === "ServiceMonitor");
    const [relabeling] = monitor?.spec.endpoints[0].relabelings ?? [];
    expect(relabeling).toEqual({ targetLabel: "job", replacement: "onceward/default/payments" });
    expect(relabeling.replacement).toMatch(new RegExp(`^${selected}$`));
  });

  test.each([
    ["an unknown value", { replicas: 3 }, "additional properties 'replicas' not allowed"],
    ["a removed value", { progressDeadlineSeconds: 600 }, "was removed: use rollout.progressDeadlineSeconds"],
    ["a rollout that can replace no replica", { rollout: { maxSurge: 0 } }, "are both 0"],
    [
      "a balancer's networks without a balancer",
      { service: { loadBalancerSourceRanges: ["10.0.0.0/8"] } },
      "need service.type LoadBalancer",
    ],
    ["an unknown setting", { config: { ONCEWARD_GPRC_PORT: 1 } }, "'ONCEWARD_GPRC_PORT' not allowed"],
    [
      "a secret as a setting",
      { config: { ONCEWARD_OPERATOR_KEY: "x" } },
      "'ONCEWARD_OPERATOR_KEY' not allowed",
    ],
    ["a number beyond its limit", { config: { ONCEWARD_POOL_SIZE: 201 } }, "maximum: got 201, want 200"],
    ["a duration without a unit", { config: { ONCEWARD_DRAIN_DELAY: "3" } }, "does not match pattern"],
    [
      "a removed drain",
      { config: { ONCEWARD_DRAIN_DELAY: null } },
      "config.ONCEWARD_DRAIN_DELAY is required",
    ],
    ["no database", { secrets: {} }, "secrets.DATABASE_URL.existingSecret is required"],
    [
      "client certificates without TLS",
      { tls: { clientCa: { existingSecret: "ca" } } },
      "needs tls.existingSecret",
    ],
    [
      "a setting in extraEnv",
      { extraEnv: [{ name: "REDIS_URL", value: "redis://a" }] },
      "must not set REDIS_URL",
    ],
    [
      "the owner's URL as a file of replicas",
      { extraEnv: [{ name: "DATABASE_DIRECT_URL_FILE", value: "/vault/owner" }] },
      "must not set DATABASE_DIRECT_URL_FILE",
    ],
    [
      "a secret twice",
      { extraEnv: [{ name: "DATABASE_URL_FILE", value: "/vault/service" }] },
      "must not set DATABASE_URL_FILE",
    ],
    [
      "more replicas than Postgres has connections for",
      { autoscaling: { enabled: true, maxReplicas: 5 }, rollout: { maxSurge: 2 } },
      "maxReplicas needs 105 connections",
    ],
    [
      "the replicas' role without the owner's URL",
      { serviceRole: { enabled: true, password: { existingSecret: "role" } } },
      "serviceRole needs secrets.DATABASE_DIRECT_URL",
    ],
    [
      "the replicas' role without migrations",
      { migrations: { mode: "none" }, serviceRole: { enabled: true } },
      "serviceRole needs migrations.mode",
    ],
    [
      "records of Citus distributed by each pod",
      { migrations: { job: { citus: true } } },
      "migrations.job.citus needs migrations.mode job",
    ],
    [
      "a label of the chart",
      { commonLabels: { "app.kubernetes.io/component": "replica" } },
      "commonLabels must not set app.kubernetes.io/component",
    ],
    [
      "a label of the chart's pods",
      { podLabels: { "app.kubernetes.io/name": "other" } },
      "podLabels must not set app.kubernetes.io/name",
    ],
    [
      "a label of the alerts",
      { prometheusRule: { alertLabels: { severity: "page" } } },
      "alertLabels must not set severity",
    ],
    [
      "an HTTP proxy without routes",
      { httpProxy: { enabled: true } },
      "httpProxy needs upstream, routes, and",
    ],
    [
      "a route that the HTTP proxy would refuse",
      { httpProxy: { routes: [{ path: "charges", namespace: "a", caller: { constant: "a" } }] } },
      "/httpProxy/routes/0/path",
    ],
    [
      "an HTTP proxy that has no certificate to present",
      {
        tls: { existingSecret: "tls", clientCa: { existingSecret: "ca" } },
        httpProxy: {
          ...{ enabled: true, upstream: "http://a", apiKey: { existingSecret: "a" } },
          routes: [{ path: "/a", namespace: "a", caller: { constant: "a" } }],
        },
      },
      "httpProxy needs address",
    ],
    [
      "an API key of the HTTP proxy in its environment",
      { httpProxy: { extraEnv: [{ name: "ONCEWARD_API_KEY", value: "a" }] } },
      "must not set ONCEWARD_API_KEY",
    ],
    ["fewer replicas than the fewest", { autoscaling: { enabled: true, minReplicas: 9 } }, "is greater than"],
  ])("refuses %s", async (_, changes, message) => {
    const file = await valuesFile({ ...MINIMAL, ...changes });
    await expect(renderText(helm, file)).rejects.toThrow(message);
  });
});

/** Validates rendered text with kubeconform, which reads no schema from elsewhere. */
async function conform(text: string, version: string) {
  const location = join(schemas, version, "{{.ResourceKind}}{{.KindSuffix}}.json");
  const args = [
    "-strict",
    "-summary",
    "-output=json",
    `-skip=${WITHOUT_SCHEMA}`,
    `-schema-location=${location}`,
  ];
  const running = run(kubeconform, args, { timeout: TIMEOUT_MS });
  running.child.stdin?.end(text);
  const { stdout } = await running.catch((error: { stdout: string }) => error);
  return JSON.parse(stdout);
}
