import { readConfig } from "../../../server/src/config/config.ts";
import { fileVariable } from "../../../server/src/config/secret-files.ts";
import { SECRETS, VARIABLES } from "../../../server/src/config/variables.ts";
import type { KubernetesObject, Labels } from "./render.ts";

/** What the server needs beyond its drain to stop, in seconds. */
const CLOSING_S = 5;
/** A text that every secret setting accepts. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  DATABASE_URL: "postgresql://host/database",
  DATABASE_DIRECT_URL: "postgresql://host/database",
  REDIS_URL: "redis://host",
  ONCEWARD_API_KEY_PEPPER: "p".repeat(32),
};
const DEFAULT_PORTS = {
  grpc: Number(VARIABLES.ONCEWARD_GRPC_PORT.default),
  http: Number(VARIABLES.ONCEWARD_HTTP_PORT.default),
  management: Number(VARIABLES.ONCEWARD_MANAGEMENT_PORT.default),
};

interface EnvVar {
  readonly name: string;
  readonly value?: string;
}

interface Container {
  /** Only of containers that run another program than the server. */
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

/** A selector of pods, as Services have their labels, and other objects both. */
interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: "NotIn";
    readonly values: readonly string[];
  }[];
}

interface Volume {
  readonly name: string;
  readonly projected?: {
    readonly sources: readonly {
      readonly secret?: { readonly items: readonly { readonly path: string }[] };
    }[];
  };
}

/** Returns what is wrong with the objects of a release, beyond what the schemas of Kubernetes say. */
export function lintManifests(objects: readonly KubernetesObject[]): readonly string[] {
  const pods = objects.filter(({ kind }) => kind === "Deployment" || kind === "Job");
  return [...pods.flatMap(lintPod), ...lintSelectors(objects), ...lintPorts(objects)];
}

/** Returns the init containers and containers of a Deployment or Job. */
export function containersOf({ spec }: KubernetesObject) {
  return [...(spec.template.spec.initContainers ?? []), ...spec.template.spec.containers];
}

function lintPod(object: KubernetesObject): readonly string[] {
  const pod = object.spec.template.spec;
  const found: string[] = [];
  const demand = (holds: boolean, text: string) => {
    if (!holds) found.push(`${object.kind}: ${text}`);
  };
  demand(pod.automountServiceAccountToken === false, "the token of the ServiceAccount is mounted");
  // Variables such as ONCEWARD_SERVICE_HOST would keep the server from starting.
  demand(pod.enableServiceLinks === false, "Kubernetes adds variables for Services");
  demand(pod.securityContext?.runAsNonRoot === true, "may run as root");
  demand(pod.securityContext?.seccompProfile?.type === "RuntimeDefault", "has no seccomp profile");
  for (const container of containersOf(object)) {
    const context = container.securityContext ?? {};
    demand(context.allowPrivilegeEscalation === false, `${container.name} may gain privileges`);
    demand(context.readOnlyRootFilesystem === true, `${container.name} may write its root file system`);
    demand(String(context.capabilities?.drop) === "ALL", `${container.name} has capabilities`);
    demand(container.resources?.limits?.memory !== undefined, `${container.name} has no limit of memory`);
    const ofSecrets = lintSecretFiles(container, pod.volumes);
    for (const text of [...lintEnv(container), ...ofSecrets]) demand(false, `${container.name} ${text}`);
  }
  const grace = pod.terminationGracePeriodSeconds;
  if (object.kind === "Deployment") {
    const drainS = drainSecondsOf(object);
    demand(grace >= drainS + CLOSING_S, `is killed after ${grace} s, but its drain takes ${drainS} s`);
  }
  return found;
}

/** Returns whether a Deployment has HTTP proxies, and not replicas. */
export function isHttpProxy({ metadata }: KubernetesObject): boolean {
  return metadata.labels["app.kubernetes.io/component"] === "http-proxy";
}

function drainSecondsOf(object: KubernetesObject): number {
  const [first, ...others] = containersOf(object);
  if (isHttpProxy(object)) {
    const drain = first.args.find((text: string) => text.startsWith("--drain=")).slice("--drain=".length);
    const sleeps = others.length > 0 ? 0 : first.lifecycle.preStop.exec.command[1];
    return Number(drain) + Number(sleeps);
  }
  const { env = [] }: Container = object.spec.template.spec.containers[0];
  const drain = env.filter(({ name }) => name.startsWith("ONCEWARD_DRAIN_"));
  const config = readConfig({ ...PLACEHOLDERS, ...settingsOf(drain) });
  return (config.ONCEWARD_DRAIN_DELAY + config.ONCEWARD_DRAIN_TIMEOUT) / 1000;
}

function lintEnv(container: Container): readonly string[] {
  const { env = [] } = container;
  const found: string[] = [];
  for (const { name, value } of env) {
    if (value !== undefined && (SECRETS.includes(name) || /:\/\/[^/]*:[^/]*@/.test(value))) {
      found.push(`has the secret ${name} in plain text`);
    }
  }
  const names = env.map(({ name }) => name);
  for (const name of new Set(names.filter((name, index) => names.indexOf(name) !== index))) {
    found.push(`has ${name} twice`);
  }
  return [...found, ...lintSettings(container)];
}

/** Containers that run the server, and not psql or an HTTP proxy, read settings. */
function lintSettings({ command, args, env = [] }: Container): readonly string[] {
  if (args === undefined || command !== undefined) return [];
  try {
    readConfig(settingsOf(env));
    return [];
  } catch (error) {
    return [`is refused its settings: ${(error as Error).message}`];
  }
}

/** Returns the settings as the server would read them in the image, with placeholders for the contents of secret files. */
function settingsOf(env: readonly EnvVar[]): Readonly<Record<string, string>> {
  const given = env.map(({ name, value = "" }) => {
    const secret = SECRETS.find((each) => fileVariable(each) === name);
    return secret === undefined ? [name, value] : [secret, PLACEHOLDERS[secret] ?? ""];
  });
  return { ONCEWARD_HOST: "0.0.0.0", ...Object.fromEntries(given) };
}

/** Each variable that names a file of a secret names one that a volume of the container has. */
function lintSecretFiles(
  { env = [], volumeMounts = [] }: Container,
  volumes: readonly Volume[],
): readonly string[] {
  const mounted = volumeMounts.flatMap(({ name, mountPath }) =>
    (volumes.find((volume) => volume.name === name)?.projected?.sources ?? []).flatMap(({ secret }) =>
      (secret?.items ?? []).map(({ path }) => `${mountPath}/${path}`),
    ),
  );
  const named = env.filter(({ name }) => SECRETS.some((secret) => fileVariable(secret) === name));
  return named.flatMap(({ name, value = "" }) =>
    mounted.includes(value) ? [] : [`has no file for ${name}`],
  );
}

/** Each selector has to match replicas or HTTP proxies and not both, and only the NetworkPolicy may match pods of migrations. */
function lintSelectors(objects: readonly KubernetesObject[]): readonly string[] {
  const found: string[] = [];
  const labelsOf = (kind: string): readonly Labels[] =>
    objects.flatMap((object) => (object.kind === kind ? [object.spec.template.metadata.labels] : []));
  for (const { kind, metadata, spec } of objects) {
    const selector = kind === "ServiceMonitor" ? undefined : selectorOf(kind, spec);
    if (selector === undefined) continue;
    const selected = labelsOf("Deployment").filter((labels) => matches(selector, labels));
    if (selected.length === 0) found.push(`${kind} ${metadata.name} selects no replica`);
    if (selected.length > 1) found.push(`${kind} ${metadata.name} selects replicas and HTTP proxies`);
    const reachesJob = labelsOf("Job").some((labels) => matches(selector, labels));
    if (reachesJob && kind !== "NetworkPolicy") found.push(`${kind} ${metadata.name} selects a migration`);
  }
  for (const { kind, spec } of objects) {
    const target = spec?.scaleTargetRef;
    if (target === undefined) continue;
    const exists = objects.some(
      (object) => object.kind === target.kind && object.metadata.name === target.name,
    );
    if (!exists) found.push(`${kind} scales ${target.name}, which does not exist`);
  }
  return found;
}

function selectorOf(kind: string, spec: KubernetesObject["spec"]): Selector | undefined {
  return kind === "Service" ? { matchLabels: spec.selector } : (spec?.selector ?? spec?.podSelector);
}

function matches({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
    matchExpressions.every(({ key, values }) => !values.includes(labels[key] ?? ""))
  );
}

/** Ports of the server's container are the server's; ports of Services, probes and monitors exist. */
function lintPorts(objects: readonly KubernetesObject[]): readonly string[] {
  const found: string[] = [];
  const need = (holds: boolean, text: string) => {
    if (!holds) found.push(text);
  };
  const services = objects.filter(({ kind }) => kind === "Service");
  for (const deployment of objects.filter(({ kind }) => kind === "Deployment")) {
    const { metadata, spec } = deployment.spec.template;
    const container = isHttpProxy(deployment) ? containersOf(deployment)[0] : spec.containers[0];
    const ports = Object.fromEntries(
      container.ports.map(({ name, containerPort }: { name: string; containerPort: number }) => [
        name,
        containerPort,
      ]),
    );
    if (!isHttpProxy(deployment))
      need(
        JSON.stringify(ports) === JSON.stringify(DEFAULT_PORTS),
        "the container's ports are not the server's",
      );
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      const port = isHttpProxy(deployment) ? "proxy-metrics" : "management";
      need(container[probe]?.httpGet.port === port, `${probe} does not ask the management port`);
    }
    for (const service of services) {
      if (!matches({ matchLabels: service.spec.selector }, metadata.labels)) continue;
      for (const { name, port, targetPort } of service.spec.ports) {
        // Clients of an HTTP proxy call the port of their choice.
        const leads = isHttpProxy(deployment) ? targetPort in ports : ports[targetPort] === port;
        need(leads, `port ${name} of Service ${service.metadata.name} leads nowhere`);
      }
    }
  }
  for (const { kind, spec } of objects) {
    if (kind !== "ServiceMonitor") continue;
    const [monitored, ...others] = services.filter((service) =>
      matches(spec.selector, service.metadata.labels),
    );
    need(others.length === 0, "ServiceMonitor selects a replica's metrics twice");
    const offered = monitored?.spec.ports.map(({ name }: { name: string }) => name) ?? [];
    need(offered.includes(spec.endpoints[0].port), "ServiceMonitor scrapes a port that no Service has");
  }
  return found;
}
