import { expect, test } from "vitest";
import { cliFor, failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";

const world = useCliWorld();

/** Returns the one JSON object that a failed command printed on standard error. */
function errorIn(ended: { readonly stdout: string; readonly stderr: string }): unknown {
  expect(ended.stdout).toBe("");
  expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  return JSON.parse(ended.stderr);
}

test("with --json an error of the service is one object with its reason, fields and request id", async () => {
  const { cli } = await world().tenantWithCli();
  const ended = await cli("tenant", "set", "--key-retention", "1s", "--yes", "--json");
  expect(errorIn(ended)).toEqual({
    reason: "INVALID_REQUEST",
    message: expect.stringContaining("policy.key_retention"),
    requestId: expect.stringMatching(/^cli-/),
    fields: [{ field: "policy.key_retention", description: expect.stringContaining("1 min") }],
    metadata: {},
    exitCode: ended.exit,
  });
});

test("with --json an error of the service says when to try again", async () => {
  const { cli, tenant } = await world().tenantWithCli();
  const operator = await world().operatorCli();
  const limits = ["--operations-per-second", "1", "--burst", "1", "--yes"];
  await operator("operator tenants limits", tenant.name, ...limits);
  await expect
    .poll(() => cli("records", "list", "--json"))
    .toMatchObject(failed(1, /"reason":"QUOTA_RATE".*"retryAfterMs":\d+/));
});

test.each([
  ["an unknown option", ["tenant", "show", "--colour"], 2, "USAGE", "unknown option '--colour'"],
  ["a missing subcommand", ["records"], 2, "USAGE", "subcommand is missing"],
  ["a wrong value", ["records", "list", "--state", "lost"], 2, "USAGE", "in_progress, completed"],
  ["a missing answer", ["keys", "revoke", "0000000000000000"], 2, "USAGE", "give --yes"],
  ["a profile that is not there", ["profile", "show", "none"], 4, "NOT_FOUND", "There is no profile none"],
  ["another role's command", ["operator", "info"], 1, "ROLE_DENIED", ""],
])("with --json %s is one object", async (_, args, exit, reason, message) => {
  const { cli } = await world().tenantWithCli();
  const ended = await cli(...args, "--json");
  expect(ended.exit).toBe(exit);
  expect(errorIn(ended)).toMatchObject({ reason, message: expect.stringContaining(message), exitCode: exit });
});

test("with --json an unreachable service is one object", async () => {
  const ended = await cliFor({ grpcPort: 1 }, "ow_any")("tenant", "show", "--json");
  expect(errorIn(ended)).toMatchObject({ reason: "NO_ANSWER", exitCode: 3 });
});

test("a command's help shows the global options, too", async () => {
  const { exit, stdout } = await cliFor({ grpcPort: 1 }, "ow_any")("records", "list", "-h");
  expect(exit).toBe(0);
  expect(stdout).toContain("Global Options:");
  const flags = [
    "--profile <name>",
    "--address <url>",
    "--api-key-stdin",
    "--json",
    "--lease-expired-before",
  ];
  for (const flag of flags) expect(stdout).toContain(flag);
});
