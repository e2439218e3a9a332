import { type AgentRunner, createAgentRun } from "@onceward/client/agents";
import { messageOf, UsageError } from "./failure.ts";

const MAX_TOOLS = 1000;
const MAX_POINTERS = 16;
/** Longer than most tools run. */
const DEFAULT_TIMEOUT_MS = 300_000;
const MAX_TIMEOUT_MS = 24 * 3_600_000;

/** How the proxy names the calls of a tool: by arguments, or by the run and the step that the host puts into `_meta`. */
export type CallName =
  | { readonly by: "arguments"; readonly pointers: readonly string[] }
  | { readonly by: "run"; readonly id: string; readonly step: string };

/** How the proxy guards one tool. */
export interface ToolPolicy {
  readonly namespace: string;
  readonly name: CallName;
  /** Where the time of the operation is: among the arguments, or in `_meta` if the run names the call. Undefined: nowhere. */
  readonly createdAt: string | undefined;
  /** Arguments that differ between duplicates of one call, as JSON Pointers: not part of the fingerprint. */
  readonly ignore: readonly string[];
  /** The tool's own argument for an idempotency key: the proxy writes it in each call, and hides it from the host. */
  readonly keyArgument: string | undefined;
  readonly onCrash: "hold" | "policy";
  /** What an error of the tool says about its effect: nothing, so that `onCrash` decides; that there was none; or that it is the result. */
  readonly onToolError: "unknown" | "release" | "store";
  /** Whether a claim marks when the call is sent, so that a crash before that is not ambiguous: always with `hold`. */
  readonly marksBegin: boolean;
  /** What to do if Onceward is unreachable: nothing, or the call without a claim. */
  readonly onUnavailable: "throw" | "proceed";
  /** Whether the content of a replay says so, too. */
  readonly saysReplayed: boolean;
  readonly resolve: ResolvePolicy | undefined;
  readonly leaseMs: number | undefined;
  /** How long the upstream server may take, in milliseconds. Then the outcome is unknown. */
  readonly timeoutMs: number;
}

/** The tool that finds out whether a call happened whose outcome is unknown, and what its answer means. */
export interface ResolvePolicy {
  /** A tool of the same server that only reads. */
  readonly tool: string;
  /** By the name of its argument: a JSON Pointer into the call's arguments, as the server gets them, or `{ value }`. */
  readonly arguments: Members;
  /** By JSON Pointer into its answer, the value there, or an array of the values that it may have. */
  readonly happened: Members;
  readonly didNotHappen: Members | undefined;
  /** Where its answer has the call's result. Undefined: the answer is the result. */
  readonly result: string | undefined;
}

/** The guarded tools by their names. All other tools pass through. */
export type ProxyPolicy = ReadonlyMap<string, ToolPolicy>;

/** Parses a policy file. @throws UsageError that names the field and the limit. */
export function parsePolicy(text: string): ProxyPolicy {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`The policy must be JSON: ${error instanceof Error ? error.message : error}.`);
  }
  const top = members(file, "the policy", ["namespace", "tools"]);
  const namespace = top.namespace === undefined ? undefined : nonEmpty(top.namespace, "namespace");
  const tools = Object.entries(members(top.tools, "tools"));
  if (tools.length === 0 || tools.length > MAX_TOOLS)
    throw new UsageError(`tools must have 1-${MAX_TOOLS} members: the names of the guarded tools.`);
  return new Map(tools.map(([tool, value]) => [tool, parseTool(`tools.${tool}`, value, namespace)]));
}

const FIELDS = [
  "namespace",
  "key",
  "run",
  "createdAt",
  "ignore",
  "keyArgument",
  "onCrash",
  "onToolError",
  "onUnavailable",
  "marksBegin",
  "saysReplayed",
  "resolve",
  "leaseMs",
  "timeoutMs",
];

function parseTool(path: string, value: unknown, shared: string | undefined): ToolPolicy {
  const fields = members(value, path, FIELDS);
  const namespace = fields.namespace ?? shared;
  if (namespace === undefined) throw new UsageError(`${path}.namespace must be set, here or for all tools.`);
  const policy: ToolPolicy = {
    namespace: nonEmpty(namespace, `${path}.namespace`),
    name: parseName(path, fields),
    createdAt: optional(fields, path, "createdAt", pointer),
    ignore: optional(fields, path, "ignore", pointers) ?? [],
    keyArgument: optional(fields, path, "keyArgument", pointer),
    onCrash: choice(fields.onCrash, `${path}.onCrash`, ["hold", "policy"]),
    onToolError: choice(fields.onToolError, `${path}.onToolError`, ["unknown", "release", "store"]),
    marksBegin: choice(fields.marksBegin, `${path}.marksBegin`, [false, true]),
    onUnavailable: choice(fields.onUnavailable, `${path}.onUnavailable`, ["throw", "proceed"]),
    saysReplayed: choice(fields.saysReplayed, `${path}.saysReplayed`, [false, true]),
    resolve: optional(fields, path, "resolve", parseResolve),
    leaseMs: optional(fields, path, "leaseMs", duration),
    timeoutMs: duration(fields.timeoutMs ?? DEFAULT_TIMEOUT_MS, `${path}.timeoutMs`),
  };
  checkTogether(path, policy);
  try {
    // The client has the namespaces' rule.
    createAgentRun({} as AgentRunner, { namespace: policy.namespace, runId: "policy" });
  } catch (error) {
    throw new UsageError(`${path}.${messageOf(error)}`);
  }
  return policy;
}

function checkTogether(path: string, policy: ToolPolicy): void {
  const { name, createdAt, keyArgument, onCrash, onUnavailable } = policy;
  // The number of a call in its step is known only to the service.
  if (name.by === "run" && onUnavailable === "proceed")
    throw new UsageError(`${path}.onUnavailable "proceed" needs "key".`);
  const repeats = onCrash === "policy" ? "onCrash" : onUnavailable === "proceed" && "onUnavailable";
  if (repeats && keyArgument === undefined)
    throw new UsageError(`${path}.${repeats} needs "keyArgument": without it, the effect would be repeated.`);
  if (name.by === "run") return;
  const naming = [...name.pointers, ...(createdAt === undefined ? [] : [createdAt])];
  const isWithin = (inner: string, outer: string) => `${inner}/`.startsWith(`${outer}/`);
  if (
    keyArgument !== undefined &&
    naming.some((at) => isWithin(at, keyArgument) || isWithin(keyArgument, at))
  )
    throw new UsageError(`${path}.keyArgument must not be an argument of "key" or "createdAt".`);
}

function parseResolve(value: unknown, path: string): ResolvePolicy {
  const fields = members(value, path, ["tool", "arguments", "happened", "didNotHappen", "result"]);
  const args = members(fields.arguments, `${path}.arguments`);
  for (const [name, from] of Object.entries(args)) {
    const at = `${path}.arguments.${name}`;
    if (typeof from === "string") pointer(from, at);
    else if (members(from, at, ["value"]).value === undefined)
      throw new UsageError(`${at} must have a value.`);
  }
  return {
    tool: nonEmpty(fields.tool, `${path}.tool`),
    arguments: args,
    happened: byPointer(fields.happened, `${path}.happened`),
    didNotHappen: optional(fields, path, "didNotHappen", byPointer),
    result: optional(fields, path, "result", pointer),
  };
}

function byPointer(value: unknown, path: string): Members {
  const named = members(value, path);
  const names = Object.keys(named);
  if (names.length === 0 || names.length > MAX_POINTERS)
    throw new UsageError(`${path} must have 1-${MAX_POINTERS} members, which JSON Pointers name.`);
  for (const name of names) pointer(name, `${path}.${name}`);
  return named;
}

function parseName(path: string, { key, run }: Members): CallName {
  if ((key === undefined) === (run === undefined))
    throw new UsageError(`${path} must have either "key", the arguments that name a call, or "run".`);
  if (key !== undefined) return { by: "arguments", pointers: pointers(key, `${path}.key`) };
  const { id, step } = members(run, `${path}.run`, ["id", "step"]);
  return { by: "run", id: pointer(id, `${path}.run.id`), step: pointer(step, `${path}.run.step`) };
}

type Members = Readonly<Record<string, unknown>>;

function optional<Value>(
  fields: Members,
  path: string,
  name: string,
  parse: (value: unknown, path: string) => Value,
): Value | undefined {
  return fields[name] === undefined ? undefined : parse(fields[name], `${path}.${name}`);
}

function members(value: unknown, path: string, known?: readonly string[]): Members {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`${path} must be an object.`);
  const unknown = Object.keys(value).find((name) => known !== undefined && !known.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`${path} has the unknown member ${unknown}; it may have ${known?.join(", ")}.`);
  return value as Members;
}

function nonEmpty(value: unknown, path: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw new UsageError(`${path} must be a text.`);
}

function pointers(value: unknown, path: string): readonly string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_POINTERS)
    throw new UsageError(`${path} must be an array of 1-${MAX_POINTERS} JSON Pointers.`);
  return value.map((each, index) => pointer(each, `${path}[${index}]`));
}

function pointer(value: unknown, path: string): string {
  if (typeof value === "string" && /^(?:\/(?:[^~/]|~[01])*)+$/.test(value)) return value;
  throw new UsageError(`${path} must be a JSON Pointer, such as /orderId.`);
}

/** Returns one of the values; without a value, the first of them. */
function choice<Value extends string | boolean>(
  value: unknown,
  path: string,
  values: readonly [Value, ...Value[]],
): Value {
  const chosen = value === undefined ? values[0] : values.find((one) => one === value);
  if (chosen !== undefined) return chosen;
  throw new UsageError(`${path} must be ${values.map((one) => JSON.stringify(one)).join(" or ")}.`);
}

function duration(value: unknown, path: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1000 && (value as number) <= MAX_TIMEOUT_MS)
    return value as number;
  throw new UsageError(`${path} must be a whole number of milliseconds, 1000-${MAX_TIMEOUT_MS}.`);
}

/** Returns the value at a JSON Pointer (RFC 6901); undefined if there is none. */
export function valueAt(value: unknown, path: string): unknown {
  let at = value;
  for (const part of path.slice(1).split("/")) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = Reflect.get(at, name);
  }
  return at;
}
