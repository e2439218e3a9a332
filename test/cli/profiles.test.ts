import { stat } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { makeCertificate, tlsSettings } from "../support/network/certificates.ts";
import { startTcpProxy } from "../support/network/tcp-proxy.ts";
import { newDir } from "../support/new-dir.ts";
import { cliFor, cliWith, failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createApiKey, partsOf } from "../support/servers/tenants.ts";

const CONSOLE = "https://onceward.example";
const world = useCliWorld({ ONCEWARD_CONSOLE_ORIGIN: CONSOLE });

/** The command line with a folder of profiles, and a function that stores a key there. */
async function withProfiles() {
  const dir = await newDir();
  const env = { XDG_CONFIG_HOME: dir };
  const address = `http://127.0.0.1:${world().server.grpcPort}`;
  const set = async (key: string, ...options: string[]) => {
    const ended = await cliWith(env, `${key}\n`)("profile", "set", "test", "--api-key-stdin", ...options);
    expect(ended).toMatchObject({ exit: 0, stderr: "" });
  };
  return { cli: cliWith(env), address, set };
}

async function withEveryKey() {
  const profiles = await withProfiles();
  const tenant = await world().tenantWithCli();
  const operatorKey = await createApiKey(world().database, { role: "OPERATOR" });
  await profiles.set(tenant.tenant.apiKey, "--role", "caller", "--address", profiles.address);
  await profiles.set(tenant.adminKey, "--role", "ADMIN");
  await profiles.set(operatorKey, "--role", "operator");
  return { ...profiles, ...tenant, cli: profiles.cli, operatorKey };
}

test("each command uses the profile's key of the role that it needs", async () => {
  const { cli, caller, tenant } = await withEveryKey();
  await caller.claim({ namespace: "charges", key: "order-1" });
  expect(await cli.json("lookup", "charges", "order-1")).toMatchObject({ attempt: 1 });
  expect(await cli.json("tenant", "show")).toMatchObject({ name: tenant.name });
  expect(await cli("operator", "info")).toMatchObject({ exit: 0 });
});

test("a refusal of the environment's key names the variable, and one of a profile's key does not", async () => {
  const { tenant } = await world().tenantWithCli();
  const withEnvironment = cliFor(world().server, tenant.apiKey);
  expect(await withEnvironment("tenant", "show")).toMatchObject(
    failed(1, /^onceward: ROLE_DENIED: .* environment variable ONCEWARD_API_KEY, .*\n$/),
  );
  const ofProfile = await withProfiles();
  await ofProfile.set(tenant.apiKey, "--address", ofProfile.address);
  const { stderr } = await ofProfile.cli("tenant", "show");
  expect(stderr).toContain("ROLE_DENIED");
  expect(stderr).not.toContain("ONCEWARD_API_KEY");
});

test("a key for an unknown profile is refused with a similar one, unless given an address", async () => {
  const { cli, set, address } = await withProfiles();
  await set("ow_0000000000000000_secret", "--address", address);
  expect(await cli("profile", "set", "tets", "--role", "caller", "--api-key-stdin")).toMatchObject({
    exit: 2,
    stderr: "onceward: There is no profile tets. Did you mean test? A new one needs --address.\n",
  });
  expect(await cli.json("profile", "list")).toMatchObject([{ name: "test" }]);
});

test("--web opens the console that the service names, unless another one is stored", async () => {
  const { cli, operatorKey, adminKey } = await withEveryKey();
  const { server } = world();
  expect(await cli("audit", "list", "--web")).toMatchObject({
    exit: 0,
    stdout: `${CONSOLE}/console/audit\n`,
  });
  const ofOperator = await cliFor(server, operatorKey)("operator", "info", "--web");
  expect(ofOperator.stdout).toBe(`${CONSOLE}/console/fleet\n`);
  const other = { ONCEWARD_CONSOLE_ORIGIN: "http://127.0.0.1:8080", ONCEWARD_API_KEY: adminKey };
  expect((await cliWith(other)("jobs", "list", "--web")).stdout).toBe("http://127.0.0.1:8080/console/jobs\n");
});

test("profile show names every key by its id, and shows no secret", async () => {
  const { cli, tenant, adminKey, operatorKey } = await withEveryKey();
  const { stdout } = await cli("profile", "show");
  const json = await cli.json("profile", "show", "test");
  for (const key of [tenant.apiKey, adminKey, operatorKey]) {
    const { id, secret } = partsOf(key);
    expect(stdout).toContain(`ow_${id}_…`);
    expect(stdout + JSON.stringify(json)).not.toContain(secret);
  }
  expect(json).toMatchObject({
    name: "test",
    inUse: true,
    keys: [{ role: "caller" }, { role: "admin" }, { role: "operator" }],
  });
});

test("a key without a role is for every command, and replaces the profile's other keys", async () => {
  const { cli, adminKey, address, set } = await withEveryKey();
  await set(adminKey, "--address", address);
  expect(await cli("tenant", "show")).toMatchObject({ exit: 0 });
  expect(await cli("operator", "info")).toMatchObject(failed(1, "ROLE_DENIED"));
});

test("a command whose role has no key says which one to add", async () => {
  const { cli, set, address } = await withProfiles();
  const { tenant } = await world().tenantWithCli();
  await set(tenant.apiKey, "--role", "caller", "--address", address);
  expect(await cli("tenant", "show")).toEqual({
    exit: 2,
    stdout: "",
    stderr:
      "onceward: The profile has no admin key: add one with onceward profile set NAME --role admin --api-key-stdin.\n",
  });
});

test("doctor finds nothing wrong with a service and every key", async () => {
  const { cli, tenant } = await withEveryKey();
  const { checks } = (await cli.json("doctor")) as {
    checks: { check: string; result: string; detail: string }[];
  };
  expect(checks.map(({ check, result }) => `${check} ${result}`)).toEqual([
    "address ok",
    "connection ok",
    "TLS ok",
    "key: caller ok",
    "key: admin ok",
    "key: operator ok",
    "latency ok",
    "clock ok",
    "version ok",
  ]);
  expect(checks.map(({ detail }) => detail).join("\n")).toContain(`admin of tenant ${tenant.name}`);
});

test("doctor names a revoked key, and a key that is stored under another role", async () => {
  const { cli, set, address } = await withProfiles();
  const { tenant } = await world().tenantWithCli();
  await set(tenant.apiKey, "--role", "admin", "--address", address);
  await set("ow_0000000000000000_revoked", "--role", "caller");
  const { exit, stdout, stderr } = await cli("doctor");
  expect({ exit, stderr }).toEqual({ exit: 6, stderr: "" });
  expect(stdout).toMatch(/^key: caller +error +CREDENTIAL_INVALID: /m);
  expect(stdout).toMatch(/^key: admin +error +its role is caller: store it with --role caller$/m);
});

test("doctor ends at an address that nothing listens on", async () => {
  const { exit, stdout } = await cliFor({ grpcPort: 1 }, "ow_any")("doctor");
  expect(exit).toBe(3);
  expect(stdout).toMatch(/^connection +error +127\.0\.0\.1:1: .*ECONNREFUSED/m);
  expect(stdout).not.toContain("key:");
});

test("doctor names a certificate that is not trusted, and one that expires soon", async () => {
  const { adminKey } = await world().tenantWithCli();
  const certificate = await makeCertificate();
  onTestFinished(() => certificate.remove());
  const server = await startTestServer(world().database.url, tlsSettings(certificate));
  onTestFinished(() => server.stop());
  const env = {
    XDG_CONFIG_HOME: "/nonexistent",
    ONCEWARD_ADDRESS: `https://localhost:${server.grpcPort}`,
    ONCEWARD_API_KEY: adminKey,
  };
  const untrusted = await cliWith(env)("doctor");
  expect(untrusted).toMatchObject({
    exit: 3,
    stdout: expect.stringMatching(/^TLS +error +.*self-signed certificate/m),
  });
  const trusting = cliWith({ ...env, NODE_EXTRA_CA_CERTS: certificate.certificateFile });
  expect(await trusting.asProcess("doctor")).toMatchObject({
    exit: 5,
    stdout: expect.stringMatching(/^TLS +warning +TLSv1\.3, certificate valid until \d{4}-\d\d-\d\d$/m),
  });
});

test("completion offers the tenant's namespaces, declared or not, and profiles", async () => {
  const { cli, caller } = await withEveryKey();
  await cli("namespaces", "set", "charges", "--max-lease", "1h", "--yes");
  await caller.claim({ namespace: "chargse", key: "order-1" });
  const offered = async (...words: string[]) =>
    (await cli("completion-words", "--", ...words)).stdout.split("\n");
  expect(await offered("namespaces", "show", "ch")).toEqual(["charges", "chargse", ""]);
  expect(await offered("records", "list", "--namespace", "")).toEqual(["charges", "chargse", ""]);
  expect(await offered("--profile", "t")).toEqual(["test", ""]);
});

test("completion is silent if the service is unreachable, does not answer, or refuses the key", async () => {
  const proxy = await startTcpProxy(world().server.grpcPort);
  onTestFinished(() => proxy.close());
  proxy.setMode("swallow");
  const ports = [1, proxy.port, world().server.grpcPort];
  for (const grpcPort of ports) {
    const wrong = cliFor({ grpcPort }, "ow_0000000000000000_wrong");
    const ended = await wrong("completion-words -- records show", "");
    expect(ended).toMatchObject({ exit: 0, stderr: "" });
    expect(ended.stdout).not.toContain("charges");
  }
});

test("login asks for a key, checks it, and stores it under its role in the profile in use", async () => {
  const { cli, tenant, adminKey, address } = await withEveryKey();
  const operatorKey = await createApiKey(world().database, { role: "OPERATOR" });
  const asked: string[] = [];
  const type = (key: string) => (question: string) => {
    asked.push(question);
    return Promise.resolve(`${key} `);
  };
  const toConsole = ["--console", "https://onceward.example/console/"];
  const saved = await cli.answering(type(adminKey), "login", "other", "--address", address, ...toConsole);
  expect(saved).toMatchObject({
    exit: 0,
    stdout: expect.stringContaining(`as admin of ${tenant.name}. Saved profile other`),
  });
  expect(saved.stdout).not.toContain(partsOf(adminKey).secret);
  expect(await cli.answering(type(operatorKey), "login")).toMatchObject({ exit: 0 });
  expect((await cli("jobs", "list", "--web")).stdout).toBe("https://onceward.example/console/jobs\n");
  expect(asked).toEqual([`API key for ${address}: `, `API key for ${address}: `]);
  expect(await cli.json("profile", "show")).toMatchObject({
    ...{ name: "other", inUse: true, address, keys: [{ role: "admin" }, { role: "operator" }] },
  });
  const { file } = (await cli.json("profile", "show")) as { file: string };
  expect((await stat(file)).mode & 0o777).toBe(0o600);

  const unknown = await cli.answering(type("ow_0000000000000000_no"), "login", "third", "--address", address);
  expect(unknown).toMatchObject(failed(1, "CREDENTIAL_INVALID"));
  expect(await cli("profile", "show", "third")).toMatchObject({ exit: 4 });
  expect(await cli("login")).toMatchObject(failed(2, "--api-key-stdin"));
});
