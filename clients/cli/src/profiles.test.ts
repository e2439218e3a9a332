import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cliWith, hostFor } from "../../../test/support/processes/cli.ts";
import { resolveCredentials } from "./credentials.ts";
import { type KeyRole, profilesFile } from "./profiles.ts";

const ADDRESS = "http://localhost:50051";

let configDir: string;
beforeEach(async () => {
  configDir = await mkdtemp(join(tmpdir(), "ow-profiles-"));
});
afterEach(() => rm(configDir, { recursive: true, force: true }));

const env = () => ({ XDG_CONFIG_HOME: configDir });
const hostWith = (more: Readonly<Record<string, string>> = {}, input = "") =>
  hostFor([], { ...env(), ...more }, { input }).host;

async function run(line: string, input = "") {
  const { exit, stdout, stderr } = await cliWith(env(), input)(line);
  return { exit, printed: stdout + stderr };
}

function keep(name: string, input = `ow_${name}\n`) {
  return run(`profile set ${name} --address ${ADDRESS} --api-key-stdin`, input);
}

test("the first profile is current until another one is used", async () => {
  expect(await keep("staging")).toMatchObject({ exit: 0 });
  await keep("production");
  expect((await run("profile list")).printed).toBe(
    `PROFILE     IN USE  ADDRESS\nstaging     yes     ${ADDRESS}\nproduction          ${ADDRESS}\n`,
  );
  await run("profile use production");
  const listed = JSON.parse((await run("profile list --json")).printed);
  expect(listed).toEqual([
    { name: "staging", address: ADDRESS, inUse: false },
    { name: "production", address: ADDRESS, inUse: true },
  ]);
});

test("only its owner can read a profile's key, and it is never printed", async () => {
  const { printed } = await keep("staging");
  const file = profilesFile(hostWith());
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, "utf8")).toContain("ow_staging");
  const { printed: listed } = await run("profile list --json");
  expect(printed + listed).not.toContain("ow_");
});

test("a removed profile is deleted, with its key", async () => {
  await keep("staging");
  expect(await run("profile remove staging")).toMatchObject({ exit: 0 });
  expect(await readFile(profilesFile(hostWith()), "utf8")).not.toContain("ow_staging");
  expect(await run("profile remove staging")).toMatchObject({ exit: 4 });
  expect(await run("profile use staging")).toMatchObject({ exit: 4 });
});

test("options come before the named profile, the environment and the profile in use", async () => {
  await keep("staging");
  await keep("production");
  const given = { ONCEWARD_ADDRESS: "http://env:1", ONCEWARD_API_KEY: "ow_env" };
  const host = hostWith(given, "ow_stdin\n");
  expect(await resolveCredentials(hostWith(), {})).toEqual({ address: ADDRESS, apiKey: "ow_staging" });
  expect(await resolveCredentials(host, {})).toEqual({ address: "http://env:1", apiKey: "ow_env" });
  expect(await resolveCredentials(host, { profile: "production" })).toEqual({
    address: ADDRESS,
    apiKey: "ow_production",
  });
  expect(
    await resolveCredentials(host, { profile: "production", address: "http://given:1", apiKeyStdin: true }),
  ).toEqual({ address: "http://given:1", apiKey: "ow_stdin" });
});

test("a key without a role is for every role, until a role has its own", async () => {
  await keep("staging");
  const file = profilesFile(hostWith());
  await writeFile(file, `{"current":"a","profiles":{"a":{"address":"${ADDRESS}","apiKey":"ow_old"}}}`);
  const host = hostWith();
  const keyOf = async (role: KeyRole) => (await resolveCredentials(host, {}, role)).apiKey;
  expect([await keyOf("caller"), await keyOf("admin")]).toEqual(["ow_old", "ow_old"]);
  expect(await run("profile set a --role admin --api-key-stdin", "ow_admin")).toMatchObject({
    exit: 0,
  });
  expect([await keyOf("caller"), await keyOf("admin")]).toEqual(["ow_old", "ow_admin"]);
});

test.each([
  "{",
  "[]",
  '{"profiles":{"a":{"address":1}}}',
  '{"current":"b","profiles":{}}',
  '{"profiles":{"a":{"address":"http://a:1"}}}',
])("a file with %s is refused, and not changed", async (text) => {
  await keep("staging");
  const file = profilesFile(hostWith());
  await writeFile(file, text);
  const { exit, printed } = await run("profile list");
  expect(exit).toBe(2);
  expect(printed).toContain(file);
  expect(await keep("other")).toMatchObject({ exit: 2 });
  expect(await readFile(file, "utf8")).toBe(text);
});
