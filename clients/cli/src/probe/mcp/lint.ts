import { holds, type Verdict } from "../verdict.ts";

/** A tool as its server describes it. */
export interface Tool {
  readonly name: string;
  readonly description?: unknown;
  readonly inputSchema?: Schema;
  /** Our proxy marks the tools that it guards. */
  readonly _meta?: { readonly "onceward/guarded"?: unknown };
  readonly annotations?: { readonly readOnlyHint?: unknown; readonly idempotentHint?: unknown };
}

/** A JSON Schema, as far as it is read. The server may have written anything. */
interface Schema {
  readonly properties?: unknown;
  readonly required?: unknown;
  readonly description?: unknown;
  readonly format?: unknown;
}

/** An argument that is an idempotency key, by its name. */
export interface KeyArgument {
  /** A JSON Pointer into the arguments. */
  readonly pointer: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** A promise about the tools of a server, as it lists them. */
export interface ListCheck {
  readonly id: string;
  readonly fact: string;
  judge(tools: readonly Tool[]): Verdict;
}

/** Deeper arguments are not searched for keys. */
const MAX_DEPTH = 4;
const KEY =
  /idempoten|^(?:client|paypal)requestid$|^client(?:request)?token$|^dedup(?:e|lication)?(?:id|key|token)$/;
/** Names that are also those of other things: they are keys of a tool that creates something, or by their description. */
const PERHAPS_KEY = /^(?:charge|payment|payout|refund|transfer)?request(?:id|key)$/;
const OF_A_KEY = /idempoten|retr(?:y|ies)|duplicat/i;
const MADE_BY_MODEL =
  /\buuid|\bguid\b|\brandom|\bunique\b.*\b(?:each|every|per|this|identif\w*)\b|\b(?:generate|create|make)\b.*\bkey\b/i;
/** More of a text is not judged: a server may write any. */
const MAX_TEXT = 4096;
/** A line of a tool's description that is about its key. */
const ABOUT_KEY = /idempoten|\bkey\b/i;
/** The description says where the key comes from, or that a retry has the same. */
const STAYS = /\b(?:same|re-?us\w+)\b.*\b(?:retr|again|repeat)|\bderiv/i;
/** Members of a schema whose value a model copies. */
const COPIED = ["default", "const", "example", "examples"];
/** Verbs by which a name says whether the tool creates something at each call, changes what there is, or reads. */
const VERBS = {
  create:
    /^(?:create|duplicate|send|resend|replay|submit|purchase|buy|insert|append|push|upload|notify|forward|donate|disburse)$/,
  change:
    /^(?:update|delete|remove|cancel|edit|set|share|archive|add|upsert|capture|publish|merge|void|transfer|withdraw)$/,
  read: /^(?:get|list|search|find|fetch|read|retrieve|show|describe|count|query|lookup|check|preview|validate|verify|calculate|estimate)$/,
} as const;
/** Also nouns. They are verbs that create where a name has no other verb, and begins with them, perhaps after a product's name. */
const ALSO_NOUNS = /^(?:charge|refund|pay(?:out)?|post|reply|deposit|wire|debit|checkout|topup|email|sms)$/;
/** Verbs that create if they are about money; alone, they may change or read. */
const MOVES = /^(?:make|process|execute|initiate|issue|place|capture|transfer|withdraw|subscribe)$/;
const MONEY = /^(?:payment|payout|fund|money|transfer|order|refund|charge)s?$/;

export const LIST: readonly ListCheck[] = [
  check("list.no-key", "A tool that creates or sends has a key argument.", (tool) =>
    createsWithoutKey(tool) && !claims(tool, "idempotentHint") ? [""] : [],
  ),
  check("list.key-by-model", "No description asks the model to make up a key.", (tool) =>
    keyFaults(tool, ({ pointer, schema: { description = "", format } }) => {
      const own = `${String(description).slice(0, MAX_TEXT)}${format === "uuid" ? " (format: uuid)" : ""}`;
      const text = String(tool.description ?? "").slice(0, MAX_TEXT);
      const isAboutKey = (line: string) => ABOUT_KEY.test(line) || line.includes(pointer.slice(1));
      const lines = [...own.split("\n"), ...text.split("\n").filter(isAboutKey)];
      const line = lines.find((each) => MADE_BY_MODEL.test(each));
      return (
        line !== undefined && !STAYS.test(`${own}\n${text}`) && JSON.stringify(line.trim().slice(0, 200))
      );
    }),
  ),
  check("list.key-default", "No key has a default, constant or example.", (tool) =>
    keyFaults(tool, ({ schema }) =>
      COPIED.find((name) => ![undefined, "[]"].includes(JSON.stringify(Reflect.get(schema, name)))),
    ),
  ),
  check("list.key-optional", "A tool requires its key.", (tool) =>
    keyFaults(tool, ({ isRequired }) => !isRequired && "is optional"),
  ),
  check("list.idempotent-hint", "No tool that creates or sends without a key has idempotentHint.", (tool) =>
    createsWithoutKey(tool) && claims(tool, "idempotentHint") ? [""] : [],
  ),
  check("list.read-only-hint", "No tool with a name that writes has readOnlyHint.", (tool) =>
    claims(tool, "readOnlyHint") &&
    /create|change/.test(verbOf(tool) ?? "") &&
    !/preview|query/i.test(tool.name)
      ? [""]
      : [],
  ),
];

/** @param faultsOf returns a tool's faults, in words that may follow its name. */
function check(id: string, fact: string, faultsOf: (tool: Tool) => readonly string[]): ListCheck {
  const judge = (tools: readonly Tool[]) => {
    const found = tools.flatMap((tool) => faultsOf(tool).map((fault) => `${tool.name}${fault}`));
    return holds(found.length === 0, found.join("; "));
  };
  return { id, fact, judge };
}

/** Returns the faults of a tool's keys. Keys of tools that read are of no interest. */
function keyFaults(tool: Tool, faultOf: (key: KeyArgument) => string | false | undefined) {
  if (claims(tool, "readOnlyHint") || verbOf(tool) === "read") return [];
  return keysOf(tool).flatMap((key) => {
    const fault = faultOf(key);
    return fault ? [` ${key.pointer}: ${fault}`] : [];
  });
}

/** Returns the arguments of a tool that are keys by their name. */
export function keysOf(tool: Tool): readonly KeyArgument[] {
  const isKey = (name: string, { description }: Schema) => {
    const plain = name.toLowerCase().replaceAll(/[^a-z]/g, "");
    return (
      KEY.test(plain) || (PERHAPS_KEY.test(plain) && (creates(tool) || OF_A_KEY.test(String(description))))
    );
  };
  const within = (schema: Schema, path: string, isNeeded: boolean, depth: number): readonly KeyArgument[] =>
    Object.entries(schema.properties ?? {}).flatMap(([name, value]: [string, Schema | null]) => {
      const pointer = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      const isRequired = isNeeded && Array.isArray(schema.required) && schema.required.includes(name);
      if (typeof value !== "object" || value === null) return [];
      if (isKey(name, value)) return [{ pointer, schema: value, isRequired }];
      return depth === MAX_DEPTH ? [] : within(value, pointer, isRequired, depth + 1);
    });
  return within(tool.inputSchema ?? {}, "", true, 1);
}

function createsWithoutKey(tool: Tool): boolean {
  return creates(tool) && keysOf(tool).length === 0 && tool._meta?.["onceward/guarded"] !== true;
}

/** Whether each call of the tool creates or sends something, by its name or by its own hints. */
function creates(tool: Tool): boolean {
  const { readOnlyHint, idempotentHint } = tool.annotations ?? {};
  if (readOnlyHint === true) return false;
  return verbOf(tool) === "create" || (readOnlyHint === false && idempotentHint === false);
}

function claims({ annotations }: Tool, hint: "readOnlyHint" | "idempotentHint"): boolean {
  return annotations?.[hint] === true;
}

/** Returns what the first verb of a tool's name says. `create_or_update` changes. */
function verbOf({ name }: Tool): keyof typeof VERBS | undefined {
  const words = name
    .replaceAll(/([a-z\d])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/);
  for (const [index, word] of words.entries()) {
    const rest = words.slice(index + 1);
    if (MOVES.test(word) && (words.length === 1 || rest.some((one) => MONEY.test(one)))) return "create";
    const kind = (["create", "change", "read"] as const).find((one) => VERBS[one].test(word));
    if (kind !== undefined) return kind === "create" && words[index + 1] === "or" ? "change" : kind;
  }
  return words.slice(0, 2).some((word) => ALSO_NOUNS.test(word)) ? "create" : undefined;
}
