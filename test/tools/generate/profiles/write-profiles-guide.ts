import { writeFileSync } from "node:fs";
import type { HttpProfile } from "@onceward/client/http";
import { type ProblemType, problemFor } from "../../../../clients/typescript/src/http/problems.ts";
import { PROFILES, type Wire, wireOf } from "../../../../clients/typescript/src/http/profiles.ts";
import { ROWS, type Row, SOURCES } from "./sources.ts";

/** Writes `clients/typescript/guides/profiles.md` from the profiles and their sources; part of `npm run generate`. */
const PAGE = new URL("../../../../clients/typescript/guides/profiles.md", import.meta.url);
const NAMES = Object.keys(PROFILES) as HttpProfile[];

const INTRODUCTION = `# Profiles of HTTP

<!-- npm run generate writes this page from clients/typescript/src/http/profiles.ts and test/tools/generate/profiles/sources.ts -->

\`@onceward/client/http\` and the adapters of Express, Fastify, Hono and NestJS take a \`profile\`: the protocol that clients expect.
So do the guards in [Python](../../python/README.md#guard-a-server-a-worker-or-a-transaction) and [Go](../../go/README.md#guard-a-server).

| profile | protocol |
| --- | --- |
| \`onceward\` (default) | the draft, with keys also without quotes, a mark of replays, and problem+json |
| \`ietf\` | [draft-ietf-httpapi-idempotency-key-header-07](https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07) alone |
| \`stripe\` | as [Stripe's API](https://docs.stripe.com/api/idempotent_requests) |
| \`acp\` | [Agentic Commerce Protocol](https://github.com/agentic-commerce-protocol/agentic-commerce-protocol), agentic checkout §6 |
| \`ucp\` | [Universal Commerce Protocol](https://github.com/Universal-Commerce-Protocol/ucp), checkout over REST |

With every profile, nothing runs twice, and a caller never gets another caller's response. Neither cookies nor hop-by-hop headers are replayed.
Other refusals, such as 409 for an ambiguous record and 503 while the service is unreachable, keep their [statuses](../src/http/problems.ts).

`;

const NOTES = `
The options \`methods\`, \`required\`, \`fingerprint\`, \`stores\` and \`problemBody\` override the profile, except that \`acp\` never stores a
5xx. With \`documentation\`, refusals link to your page about keys: \`Link: <https://api.example/keys>; rel="describedby"\`.

In every format, a refusal names its type, such as \`Link: <urn:onceward:problem:in-progress>; rel="type"\`. A guard whose handler passes on
such a response does not store it.

- After a change of a route's profile, the same header may name a new operation. Change it when no retries are due.
- \`acp\` and \`ucp\` ask that results are kept for 24 hours: give the namespace a \`result_retention\` of that or more.
- \`ucp\` asks to compare the body's bytes. The guard compares JSON by its value, as behind a parser of JSON.
- \`ucp\` asks to fail closed: leave \`onUnavailable\` at \`throw\`.

## Sources
`;

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
const table = [
  line("", ...NAMES.map((name) => `\`${name}\``)),
  line(...["", ...NAMES].map(() => "---")),
  ...rows.map((row) => line(ROWS[row], ...wires.map(({ name, wire }) => CELLS[row](wire, name)))),
];
const sources = Object.entries(SOURCES).map(([name, cells]) =>
  [
    `\n### \`${name}\`\n`,
    ...rows.filter((row) => cells[row] !== "not prescribed").map((row) => `- ${ROWS[row]}: ${cells[row]}`),
    "",
  ].join("\n"),
);
writeFileSync(PAGE, `${INTRODUCTION}${table.join("\n")}\n${NOTES}${sources.join("")}`);

function line(...cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
