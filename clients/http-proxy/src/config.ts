import type { HttpProfile } from "@onceward/client/http";
import { LineCounter, parseDocument } from "yaml";
import { z } from "zod";

/** Large enough for a thousand routes. */
export const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_ROUTES = 1000;
/** The guard holds a request in memory for its fingerprint. */
const DEFAULT_MAX_BODY_BYTES = 1024 * 1024;
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 24 * 3_600_000;
const METHODS = ["POST", "PUT", "PATCH", "DELETE"] as const;
const PROFILES = ["onceward", "ietf", "stripe", "acp", "ucp"] as const satisfies readonly HttpProfile[];

const headerName = z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,128}$/, "must be a header's name");

const KEY_HEADER = "Idempotency-Key";

/** Headers with a credential, which is renewed: their text is not an identity. */
const CREDENTIALS: ReadonlySet<string> = new Set(["authorization", "cookie"]);

const token = {
  claim: z.string().min(1).max(128).default("sub"),
  header: headerName.default("authorization"),
};
/** A claim of a token, which the proxy verifies, or a gateway in front of it: a client could forge any other. */
const jwt = z.union([
  z.strictObject({
    ...token,
    jwksUrl: z.url({ protocol: /^https?$/, error: "must be an http or https URL" }),
    issuer: z.string().min(1).max(2048),
    audience: z.string().min(1).max(2048).optional(),
  }),
  z.strictObject({ ...token, verifiedBy: z.literal("gateway") }),
]);

const route = z.strictObject({
  path: z
    .string()
    .max(1024)
    .regex(/^\/[\x21-\x7e]*$/, "must begin with a slash, such as /charges/:id")
    .refine(
      isWithoutReservedEscapes,
      "must not have an escape of a delimiter, such as %2F, or a malformed one",
    )
    .refine(isPattern, "must have parameters such as :id, each once, and * only as its last segment")
    .describe("Pattern of the path: /charges/:id matches one segment, /files/* the rest."),
  methods: z.array(z.enum(METHODS)).min(1).optional().describe("Default: the profile's."),
  namespace: z
    .string()
    .min(1)
    .max(128)
    .describe("Group of operations that share a policy; give it the policy HOLD."),
  profile: z.enum(PROFILES).default("onceward").describe("Protocol that clients expect."),
  caller: z
    .union([
      z.strictObject({ header: headerName }),
      z.strictObject({ apiKey: headerName }),
      z.strictObject({ jwt }),
      z.strictObject({ clientCertificate: z.literal("subject") }),
      z.strictObject({ constant: z.string().min(1).max(128) }),
    ])
    .refine(
      (caller) => !("header" in caller && CREDENTIALS.has(caller.header.toLowerCase())),
      "must not be the text of a credential: once it is renewed, its caller would be another one, and a retry would run again. Use jwt, a header that a gateway sets, or apiKey for keys that clients keep",
    )
    .describe(
      "Where the caller's identity comes from: a header that the client can't forge, an API key that clients keep, a claim of a verified token, the subject of the client's certificate, or one caller for all requests.",
    ),
  operation: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(
      "Name of the operation, in place of method, scheme, host and path, which its keys count for. Not with stripe.",
    ),
  keyHeader: headerName
    .default(KEY_HEADER)
    .describe("Header with the key of an operation. Only with the profile onceward."),
  required: z
    .boolean()
    .optional()
    .describe("Whether a request without a key is refused. Default: the profile's."),
  ignore: z
    .array(z.string().max(1024).regex(/^\//, "must be a JSON Pointer, such as /sentAt"))
    .max(16)
    .default([])
    .describe("Members of a JSON body that differ between attempts, as JSON Pointers."),
  maxBodyBytes: z
    .int()
    .min(0)
    .max(MAX_BODY_BYTES)
    .default(DEFAULT_MAX_BODY_BYTES)
    .describe("A larger request is refused with 413."),
  timeoutMs: z
    .int()
    .min(1)
    .max(MAX_TIMEOUT_MS)
    .default(DEFAULT_TIMEOUT_MS)
    .describe("How long the upstream service may take for its whole response. Then the outcome is unknown."),
  waitMs: z
    .int()
    .min(0)
    .max(60_000)
    .default(0)
    .describe("How long a request waits for another one with its key."),
  onError: z
    .enum(["release", "unknown"])
    .default("release")
    .describe("What a 5xx of the service says of its effect: that there was none, or nothing."),
  marksBegin: z
    .boolean()
    .default(false)
    .describe(
      "Whether a claim marks when the request is sent, so that a crash before that is not ambiguous. It costs a call.",
    ),
  leaseMs: z
    .int()
    .min(1000)
    .max(MAX_TIMEOUT_MS)
    .optional()
    .describe("How long a claim outlives a proxy that dies."),
});

/** What the guard refuses, with the line of the member. */
const checkedRoute = route
  .refine(({ profile, operation }) => profile !== "stripe" || operation === undefined, {
    path: ["operation"],
    error: "must not be set with the profile stripe: its keys count for all endpoints",
  })
  .refine(({ profile, keyHeader }) => profile === "onceward" || keyHeader === KEY_HEADER, {
    path: ["keyHeader"],
    error: "must not be set with another profile than onceward, which names its header",
  });

const config = z.strictObject({ routes: z.array(checkedRoute).min(1).max(MAX_ROUTES) });

/** A guarded route of the configuration. */
export type RouteConfig = z.output<typeof route>;

/** Where a route's callers come from. */
export type CallerConfig = RouteConfig["caller"];

/** A configuration that can't be used, with the line of each mistake. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Parses a configuration in YAML or JSON. @param file its name, for errors. @throws ConfigError with lines and fields. */
export function parseConfig(text: string, file: string): readonly RouteConfig[] {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES)
    throw new ConfigError(`${file}: must have at most ${MAX_CONFIG_BYTES} bytes`);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number) => `${file}:${lines.linePos(offset).line}`;
  const broken = document.errors.map(({ pos, message }) => `${at(pos[0])}: ${message}`);
  if (broken.length > 0) throw new ConfigError(broken.join("\n"));
  const parsed = config.safeParse(toJs(document, file));
  if (parsed.success) return parsed.data.routes;
  const mistakes = parsed.error.issues.map(({ path, message }) => {
    const names = path.map((part) => (typeof part === "number" ? part : String(part)));
    return `${at(offsetOf(document, names))}: ${fieldOf(names)}: ${message}`;
  });
  throw new ConfigError(mistakes.join("\n"));
}

/** Returns the JSON Schema of a configuration. */
export function configSchema(): object {
  return z.toJSONSchema(config, { io: "input" });
}

/** A path is matched once its escapes are decoded: a pattern that keeps one would guard nothing. */
function isWithoutReservedEscapes(path: string): boolean {
  try {
    return !decodeURI(path).includes("%");
  } catch {
    return false;
  }
}

/** The operation is made of the pattern and its parameters: each must be found in it, and none twice. */
function isPattern(path: string): boolean {
  const names = [...path.replaceAll("::", "").matchAll(/:(\w+)/g)].map(([, name]) => name);
  return /^(?:[^:*?]|::|:\w+(?=[/.-]|$)|(?<=\/)\*$)*$/.test(path) && new Set(names).size === names.length;
}

function toJs(document: ReturnType<typeof parseDocument>, file: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    // Such as aliases that expand without end.
    throw new ConfigError(`${file}: ${error instanceof Error ? error.message : error}`);
  }
}

/** Returns where the named value begins; for one that is missing, where the value around it begins. */
function offsetOf(document: ReturnType<typeof parseDocument>, path: readonly (string | number)[]): number {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { range?: readonly number[] } | undefined;
    if (node?.range?.[0] !== undefined) return node.range[0];
  }
  return document.contents?.range?.[0] ?? 0;
}

function fieldOf(path: readonly (string | number)[]): string {
  if (path.length === 0) return "the file";
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`))
    .join("")
    .replace(/^\./, "");
}
