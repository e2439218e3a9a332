import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { problemsOf } from "../helpers/pages/checks.ts";
import { pagesWithCommands, typedOn } from "../helpers/pages/commands.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

interface Tested {
  readonly page: string;
  /** The test that types the commands of the page's blocks. */
  readonly by: string;
  /** The beginnings of the blocks that it types; all, if absent. */
  readonly blocks?: readonly string[];
}

const TESTED: readonly Tested[] = [
  { page: "clients/cli/operators.md", by: "test/commands/readme.test.ts" },
  { page: "clients/cli/tenant-admins.md", by: "test/commands/readme.test.ts" },
  {
    page: "clients/README.md",
    by: "test/commands/other-languages.test.ts",
    blocks: ["grpcurl ", "npx ", "go mod init ", "mvn "],
  },
  { page: "clients/go/README.md", by: "test/commands/go-client.test.ts" },
  {
    page: "clients/typescript/guides/http.md",
    by: "test/packaging/first-example.test.ts",
    blocks: ["curl "],
  },
  { page: "deploy/helm/onceward/README.md", by: "test/deploy/chart-page.test.ts" },
  { page: "deploy/observability.md", by: "test/deploy/runbook.test.ts" },
  {
    page: "deploy/README.md",
    by: "test/commands/systemd.test.ts",
    blocks: ["cd /opt/onceward/", "ln -sfn VERSION "],
  },
  { page: "deploy/recovery.md", by: "test/commands/recovery.test.ts" },
  { page: "deploy/runbook.md", by: "test/deploy/runbook.test.ts" },
  { page: "deploy/upgrade.md", by: "test/commands/upgrade.test.ts", blocks: ["onceward-server migrate"] },
];

const isTyped = (page: string, text: string) =>
  TESTED.some((each) => each.page === page && (each.blocks?.some((start) => text.startsWith(start)) ?? true));

test.each(TESTED)("$by types commands of $page", ({ page, by, blocks = [] }) => {
  expect(readFileSync(`${ROOT}${by}`, "utf8")).toContain(`"${page}"`);
  const texts = typedOn(page).flatMap(({ text, isInline }) => (isInline ? [] : [text]));
  expect(texts.length).toBeGreaterThan(0);
  for (const start of blocks) expect(texts.some((text) => text.startsWith(start))).toBe(true);
});

test.each(pagesWithCommands())(
  "every command of %s is typed by a test, or its parts are checked",
  async (page) => {
    const others = typedOn(page).filter(({ text, isInline }) => isInline || !isTyped(page, text));
    expect(await problemsOf(others)).toEqual([]);
  },
);
