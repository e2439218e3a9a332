import { configSchema as routesSchema } from "../../../clients/http-proxy/src/config.ts";
import { SECRETS } from "../../../server/src/config/variables.ts";
import { configSchema } from "./config-schema.ts";
import { flag, type JsonSchema, map, matching, part, parts, text, textMap, whole } from "./json-schema.ts";
import type { ChartValue } from "./values.ts";

/** Name of a Kubernetes object; empty: none. */
const objectName = matching("^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$");
/** Key of a Secret; empty: the default. */
const secretKey = matching("^[-._a-zA-Z0-9]{0,253}$");
/** Key of a Secret that names a file. */
const fileKey = matching("^[-._a-zA-Z0-9]{1,253}$");
const secret = map({ existingSecret: objectName, key: secretKey });

const secretFile = map({ existingSecret: objectName, key: fileKey });
/** Numbers of a probe, whose names Kubernetes checks. */
const timing: JsonSchema = { type: "object", additionalProperties: whole(0) };

const image = {
  repository: matching("^[^\\s:@]+(:[0-9]+/[^\\s:@]+)?$"),
  tag: matching("^([A-Za-z0-9_][-.A-Za-z0-9_]{0,127})?$"),
  digest: matching("^(sha256:[0-9a-f]{64})?$"),
};
/** What the proxy takes, or none while it is off. */
const routes = { ...(routesSchema() as JsonSchema).properties?.routes, minItems: 0 };

const VALUES: Readonly<Record<string, JsonSchema>> = {
  // What `helm` adds to the values of a subchart.
  global: part,
  nameOverride: objectName,
  fullnameOverride: objectName,
  commonLabels: textMap,
  image: map({ ...image, pullPolicy: { enum: ["Always", "IfNotPresent", "Never"] } }),
  imagePullSecrets: { type: "array", items: map({ name: objectName }) },
  replicaCount: whole(0, 1000),
  config: configSchema(),
  secrets: map(Object.fromEntries(SECRETS.map((name) => [name, secret]))),
  tls: map({ existingSecret: objectName, certKey: fileKey, keyKey: fileKey, clientCa: secretFile }),
  ...{ extraEnv: parts, extraVolumes: parts, extraVolumeMounts: parts, extraObjects: parts },
  ...{ extraContainers: parts, extraInitContainers: parts, lifecycle: part },
  migrations: map({
    mode: { enum: ["initContainer", "job", "none"] },
    resources: part,
    job: map({
      backoffLimit: whole(0, 100),
      activeDeadlineSeconds: whole(1),
      ttlSecondsAfterFinished: { type: ["integer", "null"], minimum: 0 },
      citus: flag,
    }),
  }),
  serviceRole: map({
    enabled: flag,
    image: matching("^[^\\s]+$"),
    password: secretFile,
    extraEnv: parts,
    resources: part,
  }),
  resources: part,
  autoscaling: map({
    enabled: flag,
    minReplicas: whole(1, 1000),
    maxReplicas: whole(1, 1000),
    maxConnections: whole(1),
    targetCPUUtilizationPercentage: whole(1, 1000),
    behavior: part,
  }),
  podDisruptionBudget: map({
    enabled: flag,
    maxUnavailable: { type: ["integer", "string"], minimum: 1, pattern: "^[1-9][0-9]?%$|^100%$" },
  }),
  service: map({
    ...{ annotations: textMap, headlessAnnotations: textMap },
    type: { enum: ["ClusterIP", "NodePort", "LoadBalancer"] },
    ...{ loadBalancerClass: text, loadBalancerSourceRanges: { type: "array", items: text } },
    grpcAppProtocol: text,
  }),
  networkPolicy: map({ enabled: flag, callers: parts, monitoring: parts, egress: parts }),
  serviceAccount: map({ create: flag, name: objectName, annotations: textMap }),
  serviceMonitor: map({
    enabled: flag,
    labels: textMap,
    interval: matching("^[0-9]+(ms|s|m|h)$"),
    tlsConfig: part,
  }),
  prometheusRule: map({
    enabled: flag,
    labels: textMap,
    alertLabels: textMap,
    runbookUrl: matching('^[^\\s"]+$'),
    errorBudget: { type: "number", minimum: 0.000001, maximum: 1 },
    slowClaimBudget: { type: "number", minimum: 0.000001, maximum: 1 },
    quotaRefusalsPerSecond: { type: "number", minimum: 0 },
    certificateDays: { type: "number", minimum: 0 },
    ambiguousFor: matching("^[0-9]+(s|m|h|d)$"),
  }),
  dashboards: map({ enabled: flag, labels: textMap, annotations: textMap }),
  httpProxy: map({
    enabled: flag,
    replicaCount: whole(0, 1000),
    image: map(image),
    upstream: matching("^(https?://[^/?#@]+)?$"),
    routes,
    address: matching("^(https?://[^/?#@]+)?$"),
    apiKey: secretFile,
    ...{ containers: parts, extraEnv: parts, extraVolumes: parts, extraVolumeMounts: parts, clients: parts },
    drainSeconds: whole(0, 9999),
    extraArgs: { type: "array", items: text },
    service: map({ port: whole(1, 65_535), annotations: textMap }),
    resources: part,
  }),
  runAsUser: { type: ["integer", "null"], minimum: 1 },
  // Removed: templates/validate.yaml names the successor.
  progressDeadlineSeconds: {},
  rollout: map({
    ...{ maxSurge: whole(0, 1000), maxUnavailable: whole(0, 1000), minReadySeconds: whole(0) },
    ...{ revisionHistoryLimit: whole(0), progressDeadlineSeconds: whole(1) },
  }),
  probes: map({ startup: timing, liveness: timing, readiness: timing }),
  dnsConfig: part,
  podAnnotations: textMap,
  podLabels: textMap,
  priorityClassName: objectName,
  nodeSelector: textMap,
  tolerations: parts,
  affinity: part,
  topologySpreadConstraints: parts,
};

/** Returns `values.schema.json`: the schema of every value, with its comment in `values.yaml` as description. */
export function valuesSchema(values: readonly ChartValue[]): JsonSchema {
  const described = values.reduce(
    (schema, { path, description }) => describe(schema, path, description),
    map(VALUES),
  );
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Values of the chart onceward",
    ...described,
  };
}

/**
 * Returns the schema with a description at a path, unless it has one.
 *
 * @throws Error if the path is not in the schema.
 */
function describe(schema: JsonSchema, [key, ...rest]: readonly string[], description: string): JsonSchema {
  if (key === undefined) return { description, ...schema };
  const inner = schema.properties?.[key];
  if (inner === undefined) throw new Error(`values.yaml has a value that the schema lacks: ${key}`);
  return { ...schema, properties: { ...schema.properties, [key]: describe(inner, rest, description) } };
}
