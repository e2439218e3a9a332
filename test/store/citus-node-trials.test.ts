import { expect, test, vi } from "vitest";
import { createNodes } from "../../server/src/citus/nodes.ts";
import { StatementFailed } from "../../server/src/database/statement-errors.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";

const NODE = { id: 1, host: "node", port: 5432 };
const PATIENCE = { timeout: 30_000, interval: 50 };

test("a node that answers a trial with an error of its statement counts as one that answers", async () => {
  const database = await createDatabaseOfTest();
  const { proxy, url } = await proxyDatabase(database.url);
  const pool = openStorePool({ url });
  const nodes = createNodes({ openNode: () => pool, onUnreachable: () => {} });
  const run = (text: string) => nodes.use(NODE, (runner) => runner.run({ name: text, text }, []));
  proxy.setMode("refuse");
  await expect(run("select 1")).rejects.toThrow();
  expect(nodes.unreachable()).toEqual([NODE]);
  proxy.setMode("forward");
  const errorOfTrial = () => run("select 1 / 0").catch((error: unknown) => error);
  await vi.waitUntil(async () => (await errorOfTrial()) instanceof StatementFailed, PATIENCE);
  expect(nodes.unreachable()).toEqual([]);
  expect(await run("select 1 as answer")).toEqual([{ answer: 1 }]);
});
