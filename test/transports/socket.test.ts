import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { createOnceward } from "@onceward/client";
import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../support/database/use-database.ts";
import { newSocketPath, startTestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

const database = useDatabase();

const CHARGE = { namespace: "charges", key: "order-1" };

/** Starts a replica that listens on a socket. */
async function startOnSocket(env: Readonly<Record<string, string>> = {}) {
  const path = newSocketPath();
  const start = async () => {
    const server = await startTestServer(database.url, { ONCEWARD_SOCKET: path, ...env });
    onTestFinished(() => server.stop());
    return server;
  };
  return { path, server: await start(), start };
}

test("a client claims, waits and completes over a socket, and comes back after a restart", async () => {
  const { path, server, start } = await startOnSocket();
  const { apiKey } = await createTenant(database);
  await using onceward = createOnceward({ address: `unix:${path}`, apiKey });
  const { promise, resolve } = Promise.withResolvers<string>();
  const first = onceward.run(CHARGE, () => promise);
  const second = onceward.run({ ...CHARGE, waitMs: 20_000 }, async () => "charged twice");
  resolve("charged");
  expect([await first, await second]).toEqual(["charged", "charged"]);
  await server.stop();
  expect(existsSync(path)).toBe(false);
  await start();
  expect(await onceward.run(CHARGE, async () => "charged twice")).toBe("charged");
});

test.each(["unix:", "unix:x", "unix://host/x", "unix:/x?y", "unix:/x#y", "unix:/%20", "UNIX:/x"])(
  "%s, which may mean another socket, is refused",
  (address) => {
    expect(() => createOnceward({ address, apiKey: "key" })).toThrow(
      expect.objectContaining({ violations: [expect.objectContaining({ field: "address" })] }),
    );
  },
);

test("a socket asks for a credential as the port does", async () => {
  const { path } = await startOnSocket();
  const apiKey = `ow_${"0".repeat(16)}_${"0".repeat(43)}`;
  await using onceward = createOnceward({ address: `unix:${path}`, apiKey });
  await expect(onceward.run(CHARGE, async () => "charged")).rejects.toMatchObject({
    reason: "CREDENTIAL_INVALID",
  });
});

test("a socket's file has the configured rights", async () => {
  const { path } = await startOnSocket({ ONCEWARD_SOCKET_MODE: "0600" });
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a mode with which a killed process' file could not be replaced is refused", async () => {
  const starting = startTestServer(database.url, {
    ONCEWARD_SOCKET: newSocketPath(),
    ONCEWARD_SOCKET_MODE: "0444",
  });
  await expect(starting).rejects.toThrow("ONCEWARD_SOCKET_MODE");
});

test("the connections of a socket are bounded as those of one address", async () => {
  const { path } = await startOnSocket({ ONCEWARD_CONNECTIONS_PER_ADDRESS: "1" });
  const { apiKey } = await createTenant(database);
  await using held = createOnceward({ address: `unix:${path}`, apiKey });
  await held.run(CHARGE, async () => "charged");
  await using refused = createOnceward({ address: `unix:${path}`, apiKey, timeoutMs: 500 });
  await expect(refused.run(CHARGE, async () => "charged")).rejects.toMatchObject({ reason: "NO_ANSWER" });
});

test("the file of a killed process is replaced", async () => {
  const path = newSocketPath();
  const code = `require("net").createServer().listen(${JSON.stringify(path)}, () => console.log("up"))`;
  const killed = spawn(process.execPath, ["-e", code]);
  await once(killed.stdout, "data");
  killed.kill("SIGKILL");
  await once(killed, "exit");
  expect(existsSync(path)).toBe(true);
  const server = await startTestServer(database.url, { ONCEWARD_SOCKET: path });
  onTestFinished(() => server.stop());
  const { apiKey } = await createTenant(database);
  await using onceward = createOnceward({ address: `unix:${path}`, apiKey });
  expect(await onceward.run(CHARGE, async () => "charged")).toBe("charged");
});

test.each(["a socket that another process serves", "a file"])("%s is never replaced", async (what) => {
  const path = newSocketPath();
  if (what === "a file") {
    writeFileSync(path, "kept");
    onTestFinished(() => rm(path));
  } else {
    const other = createServer().listen(path);
    await once(other, "listening");
    onTestFinished(() => void other.close());
  }
  const starting = startTestServer(database.url, { ONCEWARD_SOCKET: path });
  await expect(starting).rejects.toThrow(`cannot listen on ${path}`);
  expect(existsSync(path)).toBe(true);
});
