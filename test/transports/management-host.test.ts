import { expect, onTestFinished, test } from "vitest";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { startTestServer } from "../support/servers/server.ts";

test("the management port may have another address than the other ports", async () => {
  const database = await createDatabaseOfTest();
  const { httpPort, managementPort, stop } = await startTestServer(database.url, {
    ONCEWARD_MANAGEMENT_HOST: "127.0.0.2",
  });
  onTestFinished(stop);
  const statusOf = (host: string, port: number, path: string) =>
    fetch(`http://${host}:${port}${path}`).then(({ status }) => status);
  expect(await statusOf("127.0.0.2", managementPort, "/metrics")).toBe(200);
  await expect(statusOf("127.0.0.1", managementPort, "/metrics")).rejects.toThrow("fetch failed");
  expect(await statusOf("127.0.0.1", httpPort, "/nowhere")).toBe(404);
});
