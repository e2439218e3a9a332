import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SOURCE = fileURLToPath(new URL("../../server/src/", import.meta.url));

/** Pure: these files reach no database, network or disk, and import only each other. */
const PURE = [
  "domain",
  "records/attempt.ts",
  "records/late-keys.ts",
  "records/record.ts",
  "records/reply-room.ts",
  "records/result-bytes.ts",
  "records/result-digest.ts",
  "records/settlement.ts",
  "records/token-floor.ts",
];

/** What builds the service of its parts, and imports any of them. */
const TOP = ["main.ts", "commands/commands.ts", "commands/migrate.ts", "commands/serve.ts", "replica"];

/** The rooms of the core and of the protocol. Each imports only from those that follow it. */
const CORE = [
  "core-parts.ts",
  "commands",
  "transport",
  "records",
  "config",
  "access",
  "records/replay",
  "background",
  "database/tenants",
  "records/engine",
  "database",
  "telemetry",
  "version.ts",
  PURE,
].flat();

/** The features that a feature imports, and why. */
const FEATURES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  admin: {},
  citus: {},
  console: {},
  doctor: {
    citus: "a check asks the nodes",
    encryption: "a check counts what no key decrypts",
  },
  encryption: {},
  "history-export": {
    encryption: "it exports results in plain form",
    "key-history": "it exports what is declined",
  },
  insight: {
    admin: "its RPCs have the pages and rights of the tenant's others, and the buckets of its usage",
  },
  "key-history": { admin: "its RPC has the rights of the tenant's other RPCs" },
  moving: { encryption: "it exports values in plain form" },
  tracing: {},
};

/** `from "./x.ts"`, `import("./x.ts")`, and the statements' client, unless only its types are imported. */
const IMPORT = /(?:from|import)\s*\(?\s*"(\.[^"]+)"|^import (?!type ).*"(pg)"/gm;

interface Import {
  readonly from: readonly string[];
  readonly to: readonly string[];
}

async function listImports(): Promise<readonly Import[]> {
  const files = (await readdir(SOURCE, { recursive: true })).filter(
    (file) => /(?<!\.test)\.ts$/.test(file) && !file.startsWith("gen/"),
  );
  const lists = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(SOURCE, file), "utf8");
      return [...text.matchAll(IMPORT)].map(([, path = "", client]) => ({
        from: file.split("/"),
        to: client === undefined ? normalize(join(dirname(file), path)).split("/") : [client],
      }));
    }),
  );
  return lists.flat();
}

const IMPORTS = await listImports();

function textOf({ from, to }: Import): string {
  return `${from.join("/")} -> ${to.join("/")}`;
}

/** Returns the room of a file: the longest of those that begin its path; a feature's is its folder. */
function roomOf(path: readonly string[]): string {
  const inRoom = [...TOP, ...CORE].filter((room) => `${path.join("/")}/`.startsWith(`${room}/`));
  return inRoom.sort((one, other) => other.length - one.length)[0] ?? (path[0] as string);
}

/** Returns the place of a room of the core among those that import each other downwards; -1: outside the core. */
function placeOf(room: string): number {
  return PURE.includes(room) ? CORE.length : CORE.indexOf(room);
}

/** The imports between rooms of the source. */
const BETWEEN_ROOMS = IMPORTS.filter(({ to }) => !["gen", "pg", ".."].includes(to[0] ?? ""))
  .map((each) => ({ ...each, importing: roomOf(each.from), imported: roomOf(each.to) }))
  .filter(({ importing, imported }) => importing !== imported);

test("each folder of the source is top, core or a feature of the list", () => {
  const rooms = new Set(BETWEEN_ROOMS.flatMap(({ importing, imported }) => [importing, imported]));
  const unknown = [...rooms].filter((room) => ![...TOP, ...CORE].includes(room) && !(room in FEATURES));
  expect(unknown).toEqual([]);
  expect(CORE.filter((room) => !room.endsWith(".ts") && !rooms.has(room))).toEqual([]);
});

test("a room of the core imports only from rooms of the core that follow it in the list", () => {
  const upwards = BETWEEN_ROOMS.filter(
    ({ importing, imported }) => placeOf(importing) >= 0 && placeOf(imported) < placeOf(importing),
  );
  expect(upwards.map(textOf)).toEqual([]);
});

test("a feature imports the core and the features that the list names", () => {
  const pairs = BETWEEN_ROOMS.filter(
    ({ importing, imported }) => importing in FEATURES && placeOf(imported) < 0,
  );
  const listed = Object.entries(FEATURES).flatMap(([from, to]) =>
    Object.keys(to).map((name) => `${from} -> ${name}`),
  );
  const found = new Set(pairs.map(({ importing, imported }) => `${importing} -> ${imported}`));
  expect([...found].sort()).toEqual(listed.sort());
});

test("the statements' client is imported by stores only", () => {
  const withClient = IMPORTS.filter(({ to }) => to[0] === "pg");
  expect(withClient.length).toBeGreaterThan(3);
  expect(withClient.filter(({ from }) => from[0] !== "database").map(textOf)).toEqual([]);
});

test("no source of the clients, the server and releases imports from test/", async () => {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const files = execFileSync("git", ["ls-files", "clients/*/src/*.ts", "deploy/*.ts", "server/*.ts"], {
    cwd: root,
    encoding: "utf8",
  }).split("\n");
  const programs = files.filter((file) => /(?<!\.test)\.ts$/.test(file));
  expect(programs.length).toBeGreaterThan(500);
  const importing = programs.filter((file) =>
    /from "[./]+\/test\//.test(readFileSync(join(root, file), "utf8")),
  );
  expect(importing).toEqual([]);
});
