import { expect, test } from "vitest";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { failed } from "../support/processes/cli.ts";
import { createWorkplace, FREE_PORTS, runCommand } from "../support/processes/command.ts";
import { runHere } from "../support/processes/run-here.ts";
import { settingsFor, startServe } from "../support/processes/serve.ts";

/** A port that is not in use. */
const NO_POSTGRES = "postgresql://onceward:a-password@localhost:1/onceward";

test("a replica drains at a request to stop and ends with exit code 0", async () => {
  const workplace = await createWorkplace();
  const { url } = await createDatabaseOfTest();
  const serve = await startServe(workplace, settingsFor(url));
  serve.signal("SIGTERM");
  expect(await serve.ended).toMatchObject({ exit: 0, stderr: "" });
});

test("a schema that is older than the replica is refused with the command that updates it", async () => {
  const { url } = await createDatabaseOfTest("template0");
  const ended = await runHere(["serve"], settingsFor(url));
  expect(ended).toMatchObject(
    failed(1, /^The schema lacks 0001_initial.*\. Run: onceward-server migrate\n$/),
  );
});

test("all invalid settings are reported at once, without secrets", async () => {
  const ended = await runCommand(["serve"], await createWorkplace(), {
    DATABASE_URL: "db.example.com",
    ONCEWARD_API_KEY_PEPPER: "too short",
    ONCEWARD_OPERATOR_KEY: "not a key",
    ONCEWARD_ANONYMOUS_TENANT: "demo",
    ONCEWARD_HOST: "0.0.0.0",
    ONCEWARD_GRPC_PORT: "65536",
    ONCEWARD_DRAIN_DELAY: "3",
    ONCEWARD_GRCP_PORT: "50051",
  });
  expect(ended).toMatchObject({ exit: 1, stdout: "" });
  expect(ended.stderr.split("\n")).toEqual([
    "The configuration is not usable:",
    expect.stringMatching(/^ {2}- DATABASE_URL must be a URL such as postgresql:/),
    "  - ONCEWARD_API_KEY_PEPPER must be text of at least 32 characters",
    "  - ONCEWARD_OPERATOR_KEY must be an API key, ow_<id>_<secret>",
    "  - ONCEWARD_GRPC_PORT must be a whole number from 0 to 65535",
    expect.stringMatching(/^ {2}- ONCEWARD_DRAIN_DELAY must be a duration from 0s to 5m/),
    "  - ONCEWARD_GRCP_PORT is not known",
    "  - ONCEWARD_ANONYMOUS_TENANT lets everybody in: ONCEWARD_HOST must be a loopback address with it",
    "",
  ]);
});

test("missing settings are named", async () => {
  const ended = await runHere(["serve"], { ONCEWARD_API_KEY_PEPPER: "" });
  expect(ended).toMatchObject({
    exit: 1,
    stderr:
      "The configuration is not usable:\n  - DATABASE_URL is required\n  - ONCEWARD_API_KEY_PEPPER is required\n",
  });
});

test.each([[["serve"]], [["migrate"]], [["tenant-key", "--tenant", "acme"]]])(
  "%j reports an unreachable database, without a stack or the password",
  async (args) => {
    const ended = await runHere(args, settingsFor(NO_POSTGRES));
    expect(ended).toMatchObject(
      failed(1, /^Postgres at DATABASE_URL could not be used\.\n {2}because: .*ECONNREFUSED/),
    );
    expect(ended.stderr).not.toMatch(/\n\s+at |a-password/);
  },
);

test.each([[[]], [["server"]], [["toString"]]])("%j is not a command: the usage is printed", async (args) => {
  const ended = await runCommand(args, await createWorkplace(), FREE_PORTS);
  expect(ended).toMatchObject(failed(2, /^onceward-server COMMAND\n/));
});

test.each([[["--help"]], [["migrate", "-h"]]])("%j prints the usage to standard output", async (args) => {
  const ended = await runCommand(args, await createWorkplace(), FREE_PORTS);
  expect(ended).toMatchObject({ exit: 0, stderr: "" });
  expect(ended.stdout).toMatch(/^onceward-server COMMAND\n/);
});
