import { once } from "node:events";
import { existsSync, linkSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { basename, dirname } from "node:path";
import { createOnceward } from "@onceward/client";
import { expect, onTestFinished, test } from "vitest";
import { createPort } from "../../server/src/transport/bounds/connections.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { newSocketPath, startTestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const database = useDatabase();

const CHARGE = { namespace: "charges", key: "order-1" };

/** Starts a replica that listens on a socket. */
async function startOnSocket(env: Readonly<Record<string, string>> = {}) {
  const path = newSocketPath();
  const start = () => startServerOfTest(database.url, { ONCEWARD_SOCKET: path, ...env });
  return { path, server: await start(), start };
}

/** Leaves the file of a socket, as a killed process does. */
async function leaveSocket(path: string): Promise<void> {
  const socket = createServer().listen(`${path}-`);
  await once(socket, "listening");
  linkSync(`${path}-`, path);
  socket.close();
  await once(socket, "close");
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
  await leaveSocket(path);
  await startServerOfTest(database.url, { ONCEWARD_SOCKET: path });
  const { apiKey } = await createTenant(database);
  await using onceward = createOnceward({ address: `unix:${path}`, apiKey });
  expect(await onceward.run(CHARGE, async () => "charged")).toBe("charged");
});

test("a stopping replica leaves the file of another process' socket", async () => {
  const { path, server } = await startOnSocket();
  await rm(path);
  const other = createServer().listen(path);
  await once(other, "listening");
  onTestFinished(() => void other.close());
  await server.stop();
  expect(existsSync(path)).toBe(true);
});

test("of replicas that start at once on an abandoned path, one serves there", async () => {
  for (let turn = 0; turn < 10; turn++) {
    const path = newSocketPath();
    // In half of the turns, another process died while it replaced the path.
    for (const name of turn % 2 === 0 ? [path] : [path, `${path}~`]) await leaveSocket(name);
    const ports = Array.from({ length: 50 }, () => createPort(createServer(), 100));
    const started = await Promise.allSettled(
      ports.map((port) => port.listenOnSocket(path, 0o600, undefined)),
    );
    expect(started.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const winner = ports[started.findIndex(({ status }) => status === "fulfilled")];
    const caller = connect(path);
    await once(caller, "connect");
    await expect.poll(() => winner?.connections()).toBe(1);
    expect(readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)))).toEqual([
      basename(path),
    ]);
    caller.destroy();
    await Promise.all(ports.map((port) => port.close(0)));
  }
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
