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

/** The rooms of the core and of the protocol. Each imports only from those that follow it. */
const ROOMS = [
  "commands",
  "core/transport",
  "records",
  "domain",
  "access",
  "config",
  "access",
  "records/replay",
  "background",
  "access",
  "database/tenants",
  "records/engine",
  "database",
  "telemetry",
  PURE,
].flat();

/** The features that a feature imports, and why. */
const FEATURES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  administration: { jobs: "its RPCs start, preview and list the changes of many records" },
  citus: { doctor: "its check finds what is wrong with the nodes" },
  console: {},
  doctor: { administration: "its RPC is one of the operator's" },
  encryption: { doctor: "its check finds what it cannot decrypt" },
  insight: {
    administration: "its RPCs have the pages and the rights of the tenant's other RPCs",
    usage: "it counts late duplicates in the buckets of the usage",
  },
  jobs: {},
  "key-history": {
    administration: "its RPC has the rights of the tenant's other RPCs",
  },
  moving: {
    encryption: "it exports values in plain form",
  },
  tracing: {},
  usage: {
    administration: "its RPCs have the pages and the rights of the tenant's and operator's other RPCs",
  },
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

/** Returns the room of a file: the longest of those that begin its path. */
function roomOf(path: readonly string[]): string | undefined {
  const inRoom = ROOMS.filter((room) => `${path.join("/")}/`.startsWith(`${room}/`));
  return inRoom.sort((one, other) => other.length - one.length)[0];
}

/** Returns the place of a room among those that import each other downwards. */
function placeOf(room: string): number {
  return PURE.includes(room) ? ROOMS.length : ROOMS.indexOf(room);
}

const isCore = (folder: string | undefined) => folder === "core" || folder === "records";

test("core and records import only each other, the statements' client, generated code", () => {
  const others = IMPORTS.filter(
    ({ from, to }) => isCore(from[0]) && !isCore(to[0]) && !["gen", "pg"].includes(to[0] ?? ""),
  );
  expect(others.map(textOf)).toEqual([]);
});

test("a room of core and records imports only from rooms that follow it in the list", () => {
  const rooms = new Set(IMPORTS.flatMap(({ from }) => (isCore(from[0]) ? [roomOf(from)] : [])));
  // The types that features and the core share.
  rooms.delete(undefined);
  expect(ROOMS.filter((room) => !room.endsWith(".ts") && !rooms.has(room))).toEqual([]);
  const upwards = IMPORTS.filter(({ from, to }) => {
    const [importing, imported] = [roomOf(from), roomOf(to)];
    return importing !== undefined && imported !== undefined && placeOf(imported) < placeOf(importing);
  });
  expect(upwards.map(textOf)).toEqual([]);
});

test("a feature imports core, records, itself, and the features that the list names", () => {
  const pairs = new Map<string, Import>();
  for (const each of IMPORTS) {
    if (each.from[0] !== "features" || ["core", "records", "gen", "version.ts"].includes(each.to[0] ?? ""))
      continue;
    if (each.from[1] !== each.to[1]) pairs.set(`${each.from[1]} -> ${each.to[1]}`, each);
  }
  const listed = Object.entries(FEATURES).flatMap(([from, to]) =>
    Object.keys(to).map((name) => `${from} -> ${name}`),
  );
  expect([...pairs.keys()].sort()).toEqual(listed.sort());
});

test("the statements' client is imported by stores only, and generated messages by no store", () => {
  const isStore = ({ from }: Import) => from.includes("store");
  const withMessages = IMPORTS.filter((each) => isStore(each) && each.to[0] === "gen");
  expect(withMessages.map(textOf)).toEqual([]);
  const withClient = IMPORTS.filter(({ to }) => to[0] === "pg");
  expect(withClient.length).toBeGreaterThan(3);
  expect(withClient.filter((each) => !isStore(each)).map(textOf)).toEqual([]);
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
