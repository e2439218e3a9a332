import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatApiKey, generateApiKey } from "../../server/src/access/api-key.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { GUIDE_PROGRAMS, programOf } from "../support/guides/programs.ts";
import { typeErrors } from "../support/packages/packed-client.ts";
import { CHILD_ENVIRONMENT } from "../support/processes/child-environment.ts";
import { codeBlocks } from "../support/processes/readme.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const GUIDES = "clients/typescript/guides";
/** "typescript" names snippets for libraries that exist in JavaScript only: pages have all others in Python and Go, too. */
const LANGUAGES = ["ts", "typescript"];
const TIMEOUT_MS = 60_000;
/** Options of the compiler, for files that import the client's source. */
const SOURCE_OPTIONS = [
  ...["--customConditions", "@onceward/source", "--allowImportingTsExtensions", "--skipLibCheck"],
  ...["--target", "es2024", "--types", "node"],
];
/** The form of a key; no service is called with it. */
const KEY = formatApiKey(generateApiKey());

const database = useDatabase();
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "ow-guides-"));
  await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  await writeFile(join(dir, "package.json"), JSON.stringify({ private: true, type: "module" }));
  for (const [page, program] of Object.entries(GUIDE_PROGRAMS)) {
    const text = programOf(program, await codeBlocks(`${GUIDES}/${page}`, ...LANGUAGES));
    await writeFile(join(dir, page.replace(".md", ".ts")), text);
  }
});

afterAll(() => rm(dir, { recursive: true, force: true }));

test("every snippet of the guides belongs to a program, and is well-typed", async () => {
  const pages = await readdir(join(ROOT, GUIDES));
  const withSnippets: string[] = [];
  for (const page of pages)
    if ((await codeBlocks(`${GUIDES}/${page}`, ...LANGUAGES)).length > 0) withSnippets.push(page);
  expect(Object.keys(GUIDE_PROGRAMS).sort()).toEqual(withSnippets.sort());
  const files = Object.keys(GUIDE_PROGRAMS).map((page) => page.replace(".md", ".ts"));
  const options = [...SOURCE_OPTIONS, ...files.slice(1)];
  expect(await typeErrors(dir, files[0] ?? "", options)).toEqual([]);
});

const PROVIDER = `
declare const provider: {
  charge(order: unknown, options: { idempotencyKey: string | undefined }): Promise<{ id: string }>;
};
`;

test("the first example of each adapter of a framework compiles as it is", {
  timeout: TIMEOUT_MS,
}, async () => {
  const files = ["express", "fastify", "hono"].map((name) => `example-${name}.ts`);
  for (const file of files) {
    const source = await readFile(join(ROOT, "clients/typescript/src", file.replace("example-", "")), "utf8");
    const [, example = ""] = /\n \* ```ts\n(.*?) \* ```\n/s.exec(source) ?? [];
    await writeFile(join(dir, file), example.replaceAll(/^ \* ?/gm, "") + PROVIDER);
  }
  expect(
    await typeErrors(dir, files[0] ?? "", [...SOURCE_OPTIONS, "--lib", "es2024", ...files.slice(1)]),
  ).toEqual([]);
});

test.each(Object.keys(GUIDE_PROGRAMS))("the snippets of %s do what the page says", async (page) => {
  const env = { ...CHILD_ENVIRONMENT, DATABASE_URL: database.url, TMPDIR: dir, ONCEWARD_API_KEY: KEY };
  const args = ["--conditions=@onceward/source", page.replace(".md", ".ts")];
  const { stderr } = await run(process.execPath, args, { cwd: dir, env, timeout: TIMEOUT_MS });
  expect(stderr).toBe("");
});
