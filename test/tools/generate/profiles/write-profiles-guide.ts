import type { HttpProfile } from "@onceward/client/http";
import { type ProblemType, problemFor } from "../../../../clients/typescript/src/http/problems.ts";
import { PROFILES, type Wire, wireOf } from "../../../../clients/typescript/src/http/profiles.ts";
import { fillBlock } from "../fill-block.ts";

/** Writes the table of `clients/typescript/guides/profiles.md` from the profiles; part of `npm run generate`. */
const PAGE = new URL("../../../../clients/typescript/guides/profiles.md", import.meta.url);
const NAMES = Object.keys(PROFILES) as HttpProfile[];

/** The rows of the table: a property of every profile. */
const ROWS = {
  key: "form of the key",
  methods: "methods that are guarded",
  scope: "a key counts per caller and",
  missing: "no key",
  keyReused: "the key with another request",
  compares: "must be the same in each attempt",
  inProgress: "the first request is in progress",
  replayed: "mark of a replay",
  echoes: "`Idempotency-Key` in responses",
  serverErrors: "responses of 5xx",
} as const;

type Row = keyof typeof ROWS;

/** Returns a refusal's status and the code or type in its body. */
function refusal(wire: Wire, type: ProblemType): string {
  const problem = problemFor(wire.statuses, type);
  const body: unknown = JSON.parse(String(wire.writeBody(problem).body));
  const { error = body } = body as { error?: object };
  const { code, type: kind } = error as { code?: string; type?: string };
  return `${problem.status} \`${code ?? kind}\``;
}

const CELLS: Readonly<Record<Row, (wire: Wire, name: HttpProfile) => string>> = {
  key: (_, name) =>
    ({ "string or bare": "structured string, or bare", string: "structured string", opaque: "opaque" })[
      PROFILES[name].key
    ],
  methods: ({ methods }) => methods.join(", "),
  scope: (_, name) =>
    ({ route: "method, route", path: "method, path", "all endpoints": "nothing else" })[PROFILES[name].scope],
  missing: (wire) => (wire.required ? refusal(wire, "key-missing") : "runs, unguarded"),
  keyReused: (wire) => refusal(wire, "key-reused"),
  compares: ({ compares }) =>
    compares === "request" ? "method, path, query, body" : "body, as a JSON value",
  inProgress: (wire) => refusal(wire, "in-progress"),
  replayed: ({ replayed }) => (replayed === undefined ? "none" : `\`${replayed}: true\``),
  echoes: ({ echoes }) => (echoes ? "echoed" : "no"),
  serverErrors: ({ dropsServerErrors }) => (dropsServerErrors ? "never stored" : "not stored"),
};

const wires = NAMES.map((name) => {
  const wire = wireOf(name);
  if (wire === undefined) throw new Error(`no profile ${name}`);
  return { name, wire };
});
const rows = Object.keys(ROWS) as Row[];
fillBlock(PAGE, "profiles", [
  line("", ...NAMES.map((name) => `\`${name}\``)),
  line(...["", ...NAMES].map(() => "---")),
  ...rows.map((row) => line(ROWS[row], ...wires.map(({ name, wire }) => CELLS[row](wire, name)))),
]);

function line(...cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
