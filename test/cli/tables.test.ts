import { expect, test } from "vitest";
import { COMMANDS } from "../../clients/cli/src/command-table.ts";
import type { Host } from "../../clients/cli/src/host.ts";
import { createProgram } from "../../clients/cli/src/program.ts";
import { seconds } from "../support/calls/verbs.ts";
import { failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";

const world = useCliWorld({ ONCEWARD_USAGE_FLUSH: "100ms" });

/** The characters of a line where there is no terminal. */
const WIDTH = 80;
const LONG_NAME = "payments.of-the-european-subsidiaries.card-present.refunds";
const LONG_TEXT = "a worker that was named by a person with very many words and one more";
const LONG_KEY = `POST:/charges:acme:${"0".repeat(100)}`;

/** A key, or the target of a change, at the end of a line: whole, so that it can be copied, it alone passes the edge. */
const WHOLE = new RegExp(`(?:${LONG_KEY}|(?:namespace|record|api key|tenant|record job) \\S+)$`);

/** The arguments of each command with a table, for the tenant of the test. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  "namespaces list": [],
  "namespaces undeclared": [],
  advice: [],
  "records list": [],
  "records count": [],
  "records show": [LONG_NAME, LONG_KEY],
  "records history": [LONG_NAME, LONG_KEY],
  "jobs list": [],
  "keys list": [],
  "keys quality": [],
  "audit list": [],
  "usage show": [],
  "operator tenants list": [],
  "operator keys list": [],
  "operator audit": [],
  "operator usage": [],
  "operator replicas": [],
};

async function withLongValues() {
  const tenant = await world().tenantWithCli();
  const { admin, caller } = tenant;
  const operator = await world().operatorCli();
  await operator("operator", "keys", "create", "--label", LONG_TEXT.slice(0, 60));
  await operator("operator", "tenants", "create", LONG_NAME, "--live-records", "100000000000");
  await admin.createApiKey({ apiKey: { role: 1, label: LONG_TEXT, namespaces: [LONG_NAME] } });
  for (const owner of [LONG_TEXT, "w"])
    await caller.claim({ namespace: LONG_NAME, key: LONG_KEY, owner, lease: seconds(600) });
  await caller.claim({ namespace: "charges", key: "order-1" });
  const policy = { keyRetention: seconds(864_000) };
  await admin.updateNamespace({
    namespace: { name: LONG_NAME, policy },
    allowMissing: true,
    applyToExisting: true,
  });
  return { ...tenant, operator };
}

type Command = Awaited<ReturnType<typeof createProgram>>;

function leaves(command: Command, path: readonly string[] = []): [string, Command][] {
  if (command.commands.length === 0) return [[path.join(" "), command]];
  return command.commands.flatMap((child) => leaves(child, [...path, child.name()]));
}

test("the tables of every command fit 80 columns, also with long values", async () => {
  const names = COMMANDS.map(({ name }) => name);
  const program = await createProgram({ args: [] } as unknown as Host, names);
  const withTables = leaves(program).filter(([, made]) => made.options.some(({ long }) => long === "--wide"));
  expect(withTables.map(([path]) => path).sort()).toEqual(Object.keys(ARGUMENTS).sort());

  const { cli, operator } = await withLongValues();
  await expect.poll(async () => (await cli("usage", "show")).stdout).toContain(LONG_NAME);
  for (const [path, args] of Object.entries(ARGUMENTS)) {
    const run = path.startsWith("operator") ? operator : cli;
    const { exit, stdout, stderr } = await run(...path.split(" "), ...args);
    expect({ path, exit, stderr }).toEqual({ path, exit: 0, stderr: "" });
    // Facts of a record come before its table, and a chart after that of usage.
    const [table = ""] = stdout.slice(Math.max(0, stdout.indexOf("ATTEMPT "))).split("\nHow late ");
    const tooLong = table.split("\n").filter((line) => line.replace(WHOLE, "WHOLE").length > WIDTH);
    expect({ path, tooLong }).toEqual({ path, tooLong: [] });
    const wide = await run(...path.split(" "), ...args, "--wide");
    expect({ path, exit: wide.exit }).toEqual({ path, exit: 0 });
  }
});

test("a list shows the columns that are asked for, and JSON has every field", async () => {
  const { cli } = await withLongValues();
  const { stdout } = await cli("records", "list", "-n", LONG_NAME, "--columns", "key,owner");
  expect(stdout).toMatch(new RegExp(`^KEY +OWNER\\n${LONG_KEY} +${LONG_TEXT}\\n$`));
  expect(await cli("records", "list", "--columns", "colour")).toMatchObject(
    failed(2, "There is no column colour. Columns are namespace, state,"),
  );
  expect(await cli.json("records", "list", "-n", LONG_NAME)).toMatchObject([
    { key: LONG_KEY, owner: LONG_TEXT, attempt: 1 },
  ]);
});
