/** What a replica has and a migration has not. */
const LABEL = "app.kubernetes.io/component: replica";

/**
 * Defects of rendered text: its name, sound text, the text that replaces it, and the objection that has to be raised. For the values
 * of `production.yaml` with a Job and a ServiceMonitor.
 */
export const CHART_DEFECTS: readonly (readonly [string, string | RegExp, string, string])[] = [
  [
    "a token",
    "automountServiceAccountToken: false\n      ",
    "",
    "the token of the ServiceAccount is mounted",
  ],
  ["service links", "enableServiceLinks: false", "enableServiceLinks: true", "Kubernetes adds variables"],
  ["root", "runAsNonRoot: true", "runAsNonRoot: false", "may run as root"],
  ["no seccomp", "type: RuntimeDefault", "type: Unconfined", "has no seccomp profile"],
  ["privileges", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "may gain privileges"],
  ["a writable root", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "may write its root"],
  ["capabilities", "drop: [ALL]", "drop: [NET_RAW]", "has capabilities"],
  ["no limit", "memory: 512Mi", "cpu: 1", "migrate has no limit of memory"],
  ["a short grace period", /GracePeriodSeconds: \d+/, "GracePeriodSeconds: 40", "is killed after 40 s, but"],
  [
    "a pepper in plain text",
    "name: ONCEWARD_API_KEY_PEPPER_FILE",
    "name: ONCEWARD_API_KEY_PEPPER",
    "in plain text",
  ],
  ["a secret that is not mounted", "path: REDIS_URL", "path: REDIS", "has no file for REDIS_URL_FILE"],
  [
    "a password",
    'value: "https://issuer.example"',
    "value: https://a:b@c",
    "has the secret ONCEWARD_JWT_ISSUER",
  ],
  ["an unknown setting", "name: ONCEWARD_POOL_SIZE", "name: ONCEWARD_POOLS", "ONCEWARD_POOLS is not known"],
  [
    "a setting twice",
    "name: ONCEWARD_POOL_SIZE",
    "name: ONCEWARD_JWT_ISSUER",
    "has ONCEWARD_JWT_ISSUER twice",
  ],
  ["labels of no replica", new RegExp(`(kind: Service\n[\\s\\S]*?)${LABEL}`), "$1a: b", "selects no replica"],
  [
    "labels of migrations",
    new RegExp(`(kind: Service\n[\\s\\S]*?)${LABEL}`),
    "$1",
    "Service rel-onceward selects a migration",
  ],
  [
    "a target that is not there",
    /(scaleTargetRef:\n.*\n.*\n +name: ).*/,
    "$1other",
    "HorizontalPodAutoscaler scales other",
  ],
  [
    "another port",
    "containerPort: 50051",
    "containerPort: 50052",
    "the container's ports are not the server's",
  ],
  ["a probe of another port", /(livez\n +port: )management/, "$1http", "startupProbe does not ask"],
  [
    "a port that leads nowhere",
    "targetPort: http",
    "targetPort: web",
    "port http of Service rel-onceward leads",
  ],
  [
    "metrics of no port",
    "- port: management\n      path",
    "- port: metrics\n      path",
    "scrapes a port that no Service has",
  ],
];
