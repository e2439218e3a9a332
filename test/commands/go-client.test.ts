import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { loadFamilies } from "../../clients/conformance/src/case.ts";
import { goAdapter } from "../../clients/conformance/src/languages.ts";
import { runCases } from "../../clients/conformance/src/run-cases.ts";
import { ensureDatabase } from "../../server/dev/databases.ts";
import { startEmbeddedPostgres } from "../../server/dev/embedded/postgres.ts";
import { GO_CLIENT, GO_TIMEOUT_MS, go, goTest, installGoClient } from "../support/packages/go.ts";
import { createWorkplaceWithCluster } from "../support/processes/command.ts";
import { makeDataDir } from "../support/processes/data-dir.ts";
import { pressCtrlC, startDev } from "../support/processes/dev.ts";
import { codeBlocks, firstBlock } from "../support/processes/readme.ts";

const GUIDES = "clients/typescript/guides";
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CHECKS = fileURLToPath(new URL("../support/guides/guides_test.go", import.meta.url));
const CLIENT = "github.com/onceward/onceward/clients/go/onceward";
/** What the snippets import, by the name that they use. */
const IMPORTS: Readonly<Record<string, string>> = {
  context: "context",
  errors: "errors",
  http: "net/http",
  log: "log",
  onceward: CLIENT,
  oncewardinbox: `${CLIENT}/oncewardinbox`,
  signal: "os/signal",
  sql: "database/sql",
  sync: "sync",
  syscall: "syscall",
  time: "time",
};

/**
 * Writes the guides' Go snippets and their checks into a folder, as one package: a file for each page.
 *
 * @returns the names of the pages that have snippets in TypeScript, and of those that have as many in Go.
 */
async function writeGoSnippets(
  dir: string,
): Promise<{ typescript: readonly string[]; go: readonly string[] }> {
  const pages = { typescript: [] as string[], go: [] as string[] };
  for (const page of (await readdir(join(ROOT, GUIDES))).sort()) {
    const snippets = await codeBlocks(`${GUIDES}/${page}`, "go");
    const typescript = await codeBlocks(`${GUIDES}/${page}`, "ts");
    if (typescript.length > 0) pages.typescript.push(page);
    if (snippets.length === 0) continue;
    if (snippets.length === typescript.length) pages.go.push(page);
    await writeFile(join(dir, page.replaceAll("-", "_").replace(".md", "_guide.go")), fileOf(snippets));
  }
  await writeFile(join(dir, "guides_test.go"), await readFile(CHECKS));
  return pages;
}

function fileOf(snippets: readonly string[]): string {
  const text = snippets.join("\n");
  const used = Object.entries(IMPORTS).filter(([name]) => new RegExp(`\\b${name}\\.[A-Z]`).test(text));
  const imports = used.map(([, path]) => `\t"${path}"\n`).sort();
  return `package guides\n\nimport (\n${imports.join("")})\n\n${text}`;
}

const run = promisify(execFile);
const README = "clients/go/README.md";
const BUF = join(ROOT, "node_modules/.bin/buf");
const STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@v0.8.2";

const environment = await installGoClient();
const dir = environment.kind === "ready" ? environment.dir : "";
if (environment.kind === "missing") {
  process.stderr.write(`The Go client's module is skipped: ${environment.why}.\n`);
}

/** Runs a test if Go is there. */
const testWithGo = (title: string, run: () => Promise<void>) =>
  test.runIf(dir)(title, { timeout: GO_TIMEOUT_MS }, run);

afterAll(async () => {
  if (environment.kind === "ready") await environment.remove();
});

testWithGo("the programs of the README replay, outside the repository", async () => {
  const dev = await startDev(await createWorkplaceWithCluster());
  const printed: string[] = [];
  for (const program of await codeBlocks(README, "go")) {
    const isTest = program.includes("_test\n");
    const file = join(dir, isTest ? "readme_test.go" : "main.go");
    await writeFile(file, program.replace("127.0.0.1:50051", new URL(dev.grpcUrl).host));
    await go(dir, ["mod", "tidy"]);
    const args = isTest ? ["test", "readme_test.go"] : ["run", "main.go"];
    const stdout = await go(dir, args, { ONCEWARD_API_KEY: dev.callerKey });
    printed.push(...stdout.trim().split("\n"));
  }
  const first = "ch_1 by the first <nil>";
  expect(printed.slice(0, 5)).toEqual([first, first, "true <nil>", "true", "true too expensive"]);
  const charged = "201 charged in attempt 1";
  expect(printed.slice(5, 7).map((line) => line.trim())).toEqual([charged, `${charged} true`]);
  expect(printed[7]).toMatch(/^ok/);
  await pressCtrlC(dev);
});

testWithGo("the tutorial's program charges once, and again after a crash", async () => {
  const dev = await startDev(await createWorkplaceWithCluster());
  const program = await firstBlock("clients/tutorial.md", "go");
  await writeFile(join(dir, "charge.go"), program.replace("http://localhost:50051", dev.grpcUrl));
  await go(dir, ["mod", "tidy"]);
  const charge = (...args: readonly string[]) =>
    go(dir, ["run", "charge.go", ...args], { ONCEWARD_API_KEY: dev.callerKey });
  expect(await charge("order-1")).toBe("charging order-1, attempt 1\nch_1 <nil>\n");
  expect(await charge("order-1")).toBe("ch_1 <nil>\n");
  await expect(charge("order-2", "crash")).rejects.toThrow();
  expect(await charge("order-2")).toBe("charging order-2, attempt 2\nch_2 <nil>\n");
  await rm(join(dir, "charge.go"));
  await pressCtrlC(dev);
});

/** The one call of the first page, with what it speaks of: a provider that counts what it charged. */
const programOf = (call: string) => `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/onceward/onceward/clients/go/onceward"
)

type Order struct {
	ID    string
	Cents int
}

type Charge struct {
	Cents int
	Key   string
}

type counting struct{ charged int }

func (c *counting) Charge(_ context.Context, order Order, key string) (Charge, error) {
	c.charged++
	return Charge{order.Cents, key}, nil
}

func main() {
	ctx, order, provider := context.Background(), Order{"order-first-page", 100}, &counting{}
${call}
	fmt.Println(charge.Cents, len(charge.Key), provider.charged, err)
}
`;

testWithGo("the one call of the repository's first page charges once in two processes", async () => {
  const dev = await startDev(await createWorkplaceWithCluster());
  const call = (await firstBlock("README.md", "go")).replace("http://localhost:50051", dev.grpcUrl);
  await writeFile(join(dir, "main.go"), programOf(call));
  await go(dir, ["mod", "tidy"]);
  const once = () => go(dir, ["run", "main.go"], { ONCEWARD_API_KEY: dev.callerKey });
  expect(await once()).toBe("100 43 1 <nil>\n");
  expect(await once()).toBe("100 43 0 <nil>\n");
  await pressCtrlC(dev);
});

testWithGo("the Go client passes every case that its language has", async () => {
  const cases = loadFamilies().flatMap((family) => family.cases);
  const verdicts = await runCases(goAdapter(), cases);
  expect(verdicts.filter(({ differences }) => differences.length > 0)).toEqual([]);
});

testWithGo(
  "the Go sources pass gofmt, vet, staticcheck and their own tests with the race detector",
  async () => {
    const { stdout } = await run("gofmt", ["-l", "."], { cwd: GO_CLIENT });
    expect(stdout).toBe("");
    await go(GO_CLIENT, ["vet", "./..."]);
    await go(GO_CLIENT, ["run", STATICCHECK, "./..."]);
    await goTest(GO_CLIENT, ["-race", "./..."]);
  },
);

testWithGo("the generated messages are those of proto/", async () => {
  const copy = await mkdtemp(join(tmpdir(), "ow-go-proto-"));
  try {
    await cp(join(ROOT, "proto"), join(copy, "proto"), { recursive: true });
    await cp(GO_CLIENT, join(copy, "clients/go"), { recursive: true });
    await run(BUF, ["generate"], { cwd: join(copy, "clients/go"), timeout: GO_TIMEOUT_MS });
    for (const file of await readdir(join(GO_CLIENT, "onceward/v1"))) {
      const generated = await readFile(join(copy, "clients/go/onceward/v1", file), "utf8");
      expect(generated, file).toBe(await readFile(join(GO_CLIENT, "onceward/v1", file), "utf8"));
    }
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
});

testWithGo("the inbox handles a message once and completes claims, with database/sql and pgx", async () => {
  await withPostgres(async (url) => {
    const inbox = join(GO_CLIENT, "inboxtest");
    await go(inbox, ["vet", "./..."]);
    await goTest(inbox, ["-race", "-count=1", "./..."], { INBOX_TEST_DATABASE: url });
  });
});

testWithGo("the guides have each snippet in Go, too, and it does what its page says", async () => {
  const guides = join(dir, "guides");
  await mkdir(guides);
  const pages = await writeGoSnippets(guides);
  expect(pages.go).toEqual(pages.typescript);
  const { stdout } = await run("gofmt", ["-l", "."], { cwd: guides });
  expect(stdout).toBe("");
  const [pgx = ""] =
    /github.com\/jackc\/pgx\/v5 v\S+/.exec(await readFile(join(GO_CLIENT, "inboxtest/go.mod"), "utf8")) ?? [];
  await go(dir, ["mod", "edit", `-require=${pgx.replace(" ", "@")}`]);
  await go(dir, ["mod", "tidy"]);
  await go(guides, ["vet", "."]);
  await withPostgres(async (url) => {
    await goTest(guides, ["-count=1", "."], { DATABASE_URL: url });
  });
});

testWithGo("the examples have each effect once", async () => {
  const examples = join(GO_CLIENT, "examples");
  await go(examples, ["vet", "./..."]);
  const dev = await startDev(await createWorkplaceWithCluster());
  const service = { ONCEWARD_ADDRESS: dev.grpcUrl, ONCEWARD_API_KEY: dev.callerKey };
  const payments = await go(examples, ["run", "./payments"], service);
  expect(payments).toBe("20 orders, 20 charges; answers map[201:40 422:20]\n");
  const mails = await go(examples, ["run", "./mails"], service);
  expect(mails).toBe("1 mails sent in 3 calls; 2 messages acknowledged, 2 dead letters\n");
  const cron = await go(examples, ["run", "./cron"], service);
  expect(cron).toBe("1 machine failed; settled 1 times, reported 1 times: report 1\n");
  const agent = await go(examples, ["run", "./agent"], service);
  expect(agent).toBe(
    "the model reads: refunded order 7\n2 starts of the process, of which 1 died; 1 refund\n",
  );
  await withPostgres(async (url) => {
    const webhooks = await go(examples, ["run", "./webhooks"], { DATABASE_URL: url });
    expect(webhooks).toBe("60 deliveries of 20 events, 20 rows\n");
  });
  await pressCtrlC(dev);
});

/** Calls with the URL of an empty database, on a Postgres of its own. */
async function withPostgres(use: (url: string) => Promise<void>): Promise<void> {
  const data = await makeDataDir("ow-go-postgres-");
  const postgres = await startEmbeddedPostgres({ dataDir: join(data, "data"), settings: { fsync: "off" } });
  try {
    await ensureDatabase(postgres.url("postgres"), "billing");
    await use(postgres.url("billing"));
  } finally {
    await postgres.stop();
    await rm(data, { recursive: true, force: true });
  }
}
