import { expect, test } from "vitest";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { newDir } from "../support/new-dir.ts";
import { cliWith, failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createApiKey } from "../support/servers/tenants.ts";

const world = useCliWorld();

/** The command line with two cells, each with a tenant, and a profile without the role. */
async function withCells() {
  const env = { XDG_CONFIG_HOME: await newDir() };
  const database = await createDatabaseOfTest();
  await using stack = new AsyncDisposableStack();
  const server = await startTestServer(database.url);
  stack.defer(() => server.stop());
  const set = (name: string, port: number, key: string, ...options: string[]) =>
    cliWith(env, `${key}\n`)(
      ...["profile", "set", name, "--api-key-stdin", ...options],
      ...["--address", `http://127.0.0.1:${port}`],
    );
  const cells = [
    ["east", "zebra", world().database, world().server],
    ["west", "aardvark", database, server],
  ] as const;
  for (const [name, tenant, ofCell, { grpcPort }] of cells) {
    const key = await createApiKey(ofCell, { role: "OPERATOR" });
    await set(name, grpcPort, key, "--role", "operator");
    await ofCell.query("insert into tenants (name) values ($1)", [tenant]);
    await set("other", grpcPort, key);
  }
  return { cli: cliWith(env), set, stack: stack.move() };
}

test("one command asks all cells; a dead one has a row, hides no other, and ends it with 3", async () => {
  const { cli, set, stack } = await withCells();
  await using _ = stack;
  const json = (...args: string[]) => cli.json("operator", ...args, "--all-cells");
  expect(await json("tenants", "list")).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ cell: "east", name: "zebra" }),
      expect.objectContaining({ cell: "west", name: "aardvark" }),
    ]),
  );
  const names = ((await json("usage", "--sort", "name")) as { tenant: string }[]).map(({ tenant }) => tenant);
  expect(names).toEqual(names.toSorted());
  const limited = await cli("operator", "tenants", "list", "--all-cells", "--limit", "1");
  expect(limited).toMatchObject({ exit: 0, stderr: expect.stringContaining("There are more than 1") });
  expect(limited.stdout).toMatch(/^CELL +TENANT.*\n\S.*\n$/);

  await set("dead", 1, "ow_none", "--role", "operator");
  for (const command of [["tenants", "list"], ["usage", "--sort", "rate"], ["replicas"], ["doctor"]]) {
    const { exit, stdout, stderr } = await cli("operator", ...command, "--all-cells");
    expect({ exit, stderr }).toEqual({ exit: 3, stderr: expect.stringMatching(/^dead: .*does not answer/m) });
    for (const cell of ["east", "west", "dead"]) expect(stdout).toMatch(new RegExp(`^${cell}\\b`, "m"));
    expect(stdout.split("\n").filter(({ length }) => length > 80 && command[0] !== "doctor")).toEqual([]);
    const values = JSON.parse((await cli("operator", ...command, "--all-cells", "--json")).stdout);
    expect(values).toContainEqual({ cell: "dead", error: expect.objectContaining({ reason: "NO_ANSWER" }) });
  }
});

test("--all-cells needs profiles with a key of the role, and no other name of a service", async () => {
  const cli = cliWith({ XDG_CONFIG_HOME: await newDir() });
  const none = await cli("operator", "replicas", "--all-cells");
  expect(none).toMatchObject(failed(2, "No profile is a cell"));
  const both = await cli("operator", "replicas", "--all-cells", "--address", "http://localhost:1");
  expect(both).toMatchObject(failed(2, "name one service"));
});
