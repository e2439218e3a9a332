import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { createOnceward } from "@onceward/client";
import express, { type Express } from "express";
import { expect, onTestFinished, test } from "vitest";
import { effectsOf } from "../../../clients/cli/src/probe/effects.ts";
import { type Endpoint, readEndpoint } from "../../../clients/cli/src/probe/endpoint.ts";
import { CHECKS, probe } from "../../../clients/cli/src/probe/probe.ts";
import { idempotency } from "../../../clients/typescript/src/express.ts";
import { listen } from "../../adapters/http/listen.ts";
import { newDir } from "../../support/new-dir.ts";
import { cliWith, failed } from "../../support/processes/cli.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { startService } from "./mutant-service.ts";

const world = useServer();
const cli = cliWith({ TOKEN: "one" });
/** Each test has a pace of its own, which no test waits for. */
const BOUNDS = { requests: 2000, bytes: 64 * 1024 * 1024, seconds: 60, perSecond: 1e6, requestMs: 10_000 };

/** Everything that can be said about a sample's endpoint. */
function endpointAt(origin: string, more: Partial<Endpoint> = {}): Endpoint {
  const restart = `fetch('${origin}/restart', { method: 'POST' }).then((reply) => process.exit(reply.ok ? 0 : 1))`;
  return readEndpoint({
    url: `${origin}/charges`,
    headers: { "content-type": "application/json", authorization: `Bearer \${TOKEN}` },
    body: '{"amount":1,"order":"{{id}}"}',
    otherBody: '{"amount":2,"order":"{{id}}"}',
    otherPath: "/refunds",
    otherMethod: "PUT",
    otherHeaders: { "content-type": "application/json", authorization: "Bearer two" },
    invalidBody: '{"amount":"invalid"}',
    failHeaders: { "x-fail": "before" },
    replayHeader: "Idempotency-Replayed",
    countUrl: `${origin}/count`,
    restartCommand: [process.execPath, "-e", restart],
    lateMs: 0,
    ...more,
  });
}

async function failuresOf(endpoint: Endpoint, only?: readonly string[]) {
  const { findings } = await probe(endpoint, {
    env: { TOKEN: "one" },
    bounds: BOUNDS,
    ...(only && { only }),
  });
  return findings
    .filter(({ verdict }) => verdict.kind !== "passed")
    .map(({ check, verdict }) => ({ id: check.id, ...verdict }));
}

test("there are 30 checks or more, each with a name of its own", () => {
  expect(CHECKS.length).toBeGreaterThanOrEqual(30);
  expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length);
});

test("a service that keeps all promises passes every check", async () => {
  expect(await failuresOf(endpointAt(await startService()))).toEqual([]);
});

test.each(CHECKS.map(({ id }) => id))("%s fails on a service that breaks this promise", async (id) => {
  const lateMs = id === "replay.late" ? 250 : 0;
  const failures = await failuresOf(endpointAt(await startService(id), { lateMs }), [id]);
  expect(failures).toMatchObject([{ id, kind: "failed" }]);
});

test("a pass that proves nothing is shown as such: refused anyway, or answers all alike", async () => {
  const refused = {
    otherPath: "/none",
    otherMethod: "DELETE",
    otherHeaders: {},
    otherBody: '{"amount":"invalid"}',
  } as const;
  const strict = createServer((req, res) => {
    const isKnown =
      req.url === "/charges" && req.method === "POST" && req.headers.authorization !== undefined;
    if (!isKnown) return void res.writeHead(req.url === "/none" ? 404 : 403).end();
    let body = "";
    req.on("data", (chunk) => {
      body += chunk;
    });
    req.on("end", () => res.writeHead(body.includes("invalid") ? 422 : 201).end("{}"));
  });
  const { port, close } = await listen(strict);
  onTestFinished(close);
  const { countUrl: _, ...endpoint } = endpointAt(`http://127.0.0.1:${port}`, { ...refused, lateMs: 0 });
  const only = [
    "other.path",
    "other.method",
    "other.caller",
    "other.body",
    "other.caller-kept",
    "same-key.body",
    "replay.late",
  ];
  const failures = await failuresOf(endpoint, only);
  expect(failures.map(({ id, kind }) => [id, kind])).toEqual(
    [
      "same-key.body",
      ...only.slice(3, 4),
      "other.path",
      "other.method",
      "other.caller",
      "other.caller-kept",
      "replay.late",
    ].map((id) => [id, "nothing"]),
  );
});

test("an answer of its own hides no missing second effect and no first one's replay", async () => {
  let effects = 0;
  const seen = new Set<string>();
  const app = createServer((req, res) => {
    if (req.url === "/count") return void res.end(String(effects));
    const key = String(req.headers["idempotency-key"]);
    const isReplay = seen.has(key);
    seen.add(key);
    if (!isReplay) effects++;
    // The other path gets an answer of its own, and no effect.
    if (isReplay && req.url === "/charges") res.setHeader("idempotency-replayed", "true");
    res.writeHead(201).end(JSON.stringify({ at: req.url, as: req.headers.authorization, key }));
  });
  const { port, close } = await listen(app);
  onTestFinished(close);
  const failures = await failuresOf(endpointAt(`http://127.0.0.1:${port}`), ["other.path", "other.caller"]);
  expect(failures.map(({ id, kind }) => [id, kind])).toEqual([
    ["other.path", "failed"],
    ["other.caller", "failed"],
  ]);
});

test("a count is read up to 4 MiB", async () => {
  const endless = createServer((_, response) => void response.end("1".repeat(5 * 1024 * 1024)));
  const { port, close } = await listen(endless);
  onTestFinished(close);
  const endpoint = { ...endpointAt(`http://127.0.0.1:${port}`), countUrl: `http://127.0.0.1:${port}` };
  await expect(effectsOf(endpoint, true).count()).rejects.toThrow("answers more than 4194304 bytes");
});

test("without a count, effects are inferred from answers", async () => {
  const { countUrl: _, ...endpoint } = endpointAt(await startService("twins.2"));
  expect(await failuresOf(endpoint, ["twins.2", "same-key.effect"])).toMatchObject([
    { id: "twins.2", kind: "failed", detail: "2 effects instead of 1" },
  ]);
});

test("our guard before a real service passes every check", async () => {
  const tenant = await createTenant(world.database);
  const onceward = createOnceward({
    address: `http://127.0.0.1:${world.server.grpcPort}`,
    apiKey: tenant.apiKey,
  });
  let effects = 0;
  const app: Express = express();
  app.get("/count", (_req, res) => void res.send(String(effects)));
  app.post("/restart", (_req, res) => void res.send("restarted"));
  app.use(express.json());
  const guard = idempotency(onceward, {
    namespace: "charges",
    methods: ["POST", "PUT"],
    required: false,
    waitMs: 10_000,
    caller: (req) => req.headers.authorization ?? "",
  });
  app.all(["/charges", "/refunds"], guard, (req, res) => {
    if (req.headers["x-fail"] !== undefined) return void res.status(500).json({});
    if (req.body.amount === "invalid") return void res.status(422).json({});
    effects++;
    res.cookie("session", "secret").status(201).location(`/charges/${effects}`).json({ id: effects });
  });
  const running = await listen(createServer(app));
  onTestFinished(async () => {
    await running.close();
    await onceward.close();
  });
  expect(await failuresOf(endpointAt(`http://127.0.0.1:${running.port}`))).toEqual([]);
});

test("the command reports each check, failures as shell commands without secrets, code 6", async () => {
  const origin = await startService("same-key.status");
  const folder = await newDir();
  const config = join(folder, "probe.yaml");
  await writeFile(config, JSON.stringify({ endpoints: [endpointAt(origin)] }));
  const only = ["--only", "same-key.status", "--only", "twins.2", "--rate", "100000"];
  const failing = await cli("probe", "--config", config, ...only);
  expect(failing.stdout).toMatch(/1 passed, 1 failed, 0 prove nothing \(–\), 0 skipped/);
  expect(failing.stdout).toMatch(/same-key\.status +failed +201, then 200/);
  expect(failing.stdout).toMatch(
    /curl -si -X POST .*-H "authorization: Bearer \$\{TOKEN\}".*Idempotency-Key/,
  );
  expect(failing.exit).toBe(6);
  const json = await cli("probe", "--config", config, ...only, "--json");
  const [endpoint] = JSON.parse(json.stdout).endpoints;
  expect(endpoint.checks[0]).toMatchObject({ check: "same-key.status", result: "failed" });
  const dry = await cli("probe", "--config", config, "--dry-run");
  expect(dry.stdout.split("\n").length).toBeGreaterThan(CHECKS.length);
  // The two reports before: two operations to compare answers, and those of two checks.
  expect([dry.exit, await (await fetch(`${origin}/count`)).text()]).toEqual([0, "8"]);
});

test("a bound ends the probe, wrong usage is refused, and a refusing API is not judged", async () => {
  const origin = await startService();
  const at = ["probe", "--url", `${origin}/charges`, "--body", "{}"];
  const bounded = await cli(...at, "--only", "same-key", "--max-requests", "5", "--rate", "1000");
  expect([bounded.exit, bounded.stdout]).toEqual([5, expect.stringContaining("more than 5 requests")]);
  expect(await cli("probe")).toMatchObject(failed(2, "url"));
  expect(await cli(...at, "--only", "other.planet")).toMatchObject({ exit: 2 });
  expect(await cli(...at, "--config", "/nonexistent")).toMatchObject({ exit: 2 });
  expect(await cli("probe", "--url", `${origin}/charges`, "--body", "invalid")).toMatchObject(
    failed(1, "422 refused"),
  );
  expect(await cli("probe", "--url", "http://127.0.0.1:1/")).toMatchObject({ exit: 3 });
});
