import { expect, test } from "vitest";
import { useDatabase } from "../support/database/use-database.ts";
import { exchange } from "../support/network/raw-socket.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const database = useDatabase();

test("with an anonymous tenant, a call needs a loopback Host, against rebound names", async () => {
  const server = await startServerOfTest(database.url, { ONCEWARD_ANONYMOUS_TENANT: "demo" });
  const claim = async (host: string, target = "") => {
    const head = [
      `POST ${target}/onceward.v1.IdempotencyService/Claim HTTP/1.1`,
      `host: ${host}`,
      "content-type: application/json",
      "connection: close",
    ];
    const body = JSON.stringify({ namespace: "charges", key: `${host}${target}` });
    const request = `${[...head, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
    return (await exchange(server.httpPort, request)).split("\r\n", 1)[0];
  };
  const port = server.httpPort;
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, "LOCALHOST", "[::1]"])
    expect(await claim(host), host).toBe("HTTP/1.1 200 OK");
  for (const host of [`rebound.example:${port}`, "127.0.0.1.rebound.example", "localhost.rebound.example"])
    expect(await claim(host), host).toBe("HTTP/1.1 400 Bad Request");
  expect(await claim("localhost", "http://rebound.example")).toBe("HTTP/1.1 400 Bad Request");
});

test("the management port may have another address than the other ports", async () => {
  const { httpPort, managementPort } = await startServerOfTest(database.url, {
    ONCEWARD_MANAGEMENT_HOST: "127.0.0.2",
  });
  const statusOf = (host: string, port: number, path: string) =>
    fetch(`http://${host}:${port}${path}`).then(({ status }) => status);
  expect(await statusOf("127.0.0.2", managementPort, "/metrics")).toBe(200);
  await expect(statusOf("127.0.0.1", managementPort, "/metrics")).rejects.toThrow("fetch failed");
  expect(await statusOf("127.0.0.1", httpPort, "/nowhere")).toBe(404);
});
