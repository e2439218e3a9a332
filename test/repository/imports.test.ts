import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SOURCE = fileURLToPath(new URL("../../server/src/", import.meta.url));

/** The folders of the core. Each imports only from those that follow it. */
const CORE = [
  "commands",
  "transport",
  "claims",
  "messages",
  "calls",
  "config",
  "admission",
  "cache",
  "background",
  "auth",
  "store",
  "telemetry",
  "domain",
];

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

test("the core imports only itself, the statements' client and what is generated", () => {
  const others = IMPORTS.filter(
    ({ from, to }) => from[0] === "core" && !["core", "gen", "pg"].includes(to[0] ?? ""),
  );
  expect(others.map(textOf)).toEqual([]);
});

test("a folder of the core imports only from folders that follow it in the list", () => {
  const folders = new Set(IMPORTS.flatMap(({ from }) => (from[0] === "core" && from[2] ? [from[1]] : [])));
  expect([...folders].sort()).toEqual([...CORE].sort());
  const upwards = IMPORTS.filter(
    ({ from, to }) =>
      from[0] === "core" && to[0] === "core" && CORE.indexOf(to[1] ?? "") < CORE.indexOf(from[1] ?? ""),
  );
  expect(upwards.map(textOf)).toEqual([]);
});

test("a feature imports the core, itself, and the features that the list names with a reason", () => {
  const pairs = new Map<string, Import>();
  for (const each of IMPORTS) {
    if (each.from[0] !== "features" || ["core", "gen", "version.ts"].includes(each.to[0] ?? "")) continue;
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
