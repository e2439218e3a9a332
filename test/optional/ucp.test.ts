import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { createOnceward } from "@onceward/client";
import { idempotency } from "@onceward/client/express";
import { parseConfig, startProxy } from "@onceward/http-proxy";
import express from "express";
import { expect, onTestFinished, test } from "vitest";
import { listen } from "../adapters/http/listen.ts";
import { newDir } from "../support/new-dir.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

/**
 * The idempotency tests of UCP's conformance suite (github.com/Universal-Commerce-Protocol/conformance), which is on no package
 * registry: ONCEWARD_UCP_CONFORMANCE names a checkout. Its tools come from PyPI.
 */
const SUITE = process.env.ONCEWARD_UCP_CONFORMANCE;
/** The version of ucp-sdk with the modules that the suite imports; newer ones have moved them. */
const TOOLS = ["ucp-sdk==0.1.0", "absl-py", "httpx", "fastapi", "uvicorn"];
const TIMEOUT_MS = 600_000;
const VERSION = "2026-01-11";
if (SUITE === undefined)
  process.stderr.write("UCP's conformance tests are skipped: ONCEWARD_UCP_CONFORMANCE names no checkout.\n");

const run = promisify(execFile);
const world = useServer();

/** A shop that knows nothing of idempotency keys: each checkout that is created gets an id of its own. */
function shop(): RequestListener {
  const checkouts = new Map<string, object>();
  const app = express();
  app.use(express.json());
  app.get("/.well-known/ucp", (req, res) => {
    const rest = { schema: "https://ucp.dev/rest.json", endpoint: `http://${req.headers.host}` };
    const services = { "dev.ucp.shopping": { version: VERSION, spec: "https://ucp.dev/spec", rest } };
    res.json({ ucp: { version: VERSION, services, capabilities: [] } });
  });
  app.post("/checkout-sessions", (req, res) => {
    const id = randomUUID();
    const { line_items, currency, payment, fulfillment } = req.body;
    const lines = line_items.map((line: { item: object; quantity: number }, index: number) => ({
      ...line,
      ...{ id: `line-${index}`, item: { ...line.item, price: 100 }, totals: [] },
    }));
    const line_item_ids = lines.map((line: { id: string }) => line.id);
    const methods = fulfillment.methods.map((method: { groups: readonly object[] }) => ({
      ...{ ...method, id: "method-1", line_item_ids },
      groups: method.groups.map((group) => ({ ...group, id: "group-1", line_item_ids })),
    }));
    const checkout = {
      ...{
        ucp: { version: VERSION, capabilities: [] },
        id,
        line_items: lines,
        status: "incomplete",
        currency,
      },
      ...{ totals: [], links: [], payment, fulfillment: { methods } },
    };
    checkouts.set(id, checkout);
    res.status(201).json(checkout);
  });
  app.get("/checkout-sessions/:id", (req, res) => void res.json(checkouts.get(req.params.id)));
  const change = (status: string) => (req: express.Request, res: express.Response) => {
    const checkout = { ...checkouts.get(String(req.params.id)), status, revision: randomUUID() };
    checkouts.set(String(req.params.id), checkout);
    res.json(checkout);
  };
  app.put("/checkout-sessions/:id", change("incomplete"));
  app.post("/checkout-sessions/:id/complete", change("completed"));
  app.post("/checkout-sessions/:id/cancel", change("canceled"));
  return app;
}

async function newOnceward() {
  const tenant = await createTenant(world.database, { on_lease_expiry: "HOLD" });
  const address = `http://127.0.0.1:${world.server.grpcPort}`;
  const onceward = createOnceward({ address, apiKey: tenant.apiKey });
  onTestFinished(() => onceward.close());
  return onceward;
}

async function serve(listener: RequestListener): Promise<number> {
  const app = await listen(createServer(listener));
  onTestFinished(() => app.close());
  return app.port;
}

/** Each returns the port of a guarded shop. */
const GUARDED = {
  async "our guard for Express"() {
    const guard = idempotency(await newOnceward(), {
      namespace: "checkouts",
      profile: "ucp",
      caller: (req) => String(req.headers["ucp-agent"]),
    });
    const app = express();
    app.use("/checkout-sessions", express.json(), guard);
    app.use(shop());
    return await serve(app);
  },
  async "the HTTP proxy, before an unmodified shop"() {
    const upstream = await serve(shop());
    const guarded = "namespace: checkouts, profile: ucp, caller: { header: ucp-agent }";
    const proxy = await startProxy({
      onceward: await newOnceward(),
      upstream: new URL(`http://127.0.0.1:${upstream}`),
      routes: parseConfig(
        `routes: [{ path: /checkout-sessions, ${guarded} }, { path: /checkout-sessions/*, ${guarded} }]`,
        "routes.yaml",
      ),
      listen: { host: "127.0.0.1", port: 0 },
      management: { host: "127.0.0.1", port: 0 },
      warn: () => {},
    });
    onTestFinished(() => proxy.close(0));
    return proxy.port;
  },
};

async function runSuite(port: number): Promise<string> {
  const dir = await newDir();
  await run("python3", ["-m", "venv", dir]);
  await run(join(dir, "bin/pip"), ["install", "--quiet", ...TOOLS], { timeout: TIMEOUT_MS });
  const args = ["idempotency_test.py", `--server_url=http://127.0.0.1:${port}`];
  const ended = await run(join(dir, "bin/python"), args, { cwd: SUITE, timeout: TIMEOUT_MS }).catch(
    (error: { readonly stderr: string }) => error,
  );
  return ended.stderr;
}

test.runIf(SUITE !== undefined)(
  "without a guard, the suite fails on the shop",
  async () => {
    expect(await runSuite(await serve(shop()))).toContain("FAILED (failures=4)");
  },
  TIMEOUT_MS,
);

test.runIf(SUITE !== undefined).each(Object.entries(GUARDED))(
  "all four tests of the suite pass with %s",
  async (_, start) => {
    expect(await runSuite(await start())).toMatch(/Ran 4 tests in [\d.]+s\s+OK/);
  },
  TIMEOUT_MS,
);
