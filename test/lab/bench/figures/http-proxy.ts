import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { firstLine, startChild } from "../child.ts";
import type { Figure } from "../figure.ts";
import { alternate } from "../load.ts";

const UPSTREAM = fileURLToPath(new URL("../bare-upstream.ts", import.meta.url));
const CLI = fileURLToPath(new URL("../../../../clients/cli/src/main.ts", import.meta.url));
const ROUTES = "routes:\n  - { path: /charges, namespace: charges, caller: { constant: all } }\n";

/** Measures P19, what `onceward http-proxy` adds to a lone fresh call: proxy and upstream are processes of their own. */
export const measureHttpProxy: Figure = async ({ main, violations, signal, pace, progress }) => {
  progress("a lone fresh call, straight to a service and through the proxy");
  await using cleanUp = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "onceward-bench-proxy-"));
  cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
  const config = join(dir, "routes.yaml");
  await writeFile(config, ROUTES);
  const agent = new Agent({ keepAlive: true });
  cleanUp.defer(() => agent.destroy());

  const upstream = startChild(cleanUp, [UPSTREAM]);
  const upstreamPort = Number(await firstLine(upstream.stdout));
  const options = ["--upstream", `http://127.0.0.1:${upstreamPort}`, "--config", config];
  const addresses = ["--listen", "127.0.0.1:0", "--management", "127.0.0.1:0"];
  const proxy = startChild(
    cleanUp,
    ["--conditions=@onceward/source", CLI, "http-proxy", ...options, ...addresses],
    {
      ONCEWARD_ADDRESS: `http://127.0.0.1:${main.server.grpcPort}`,
      ONCEWARD_API_KEY: main.tenant.apiKey,
    },
  );
  const [, proxyPort] = / on 127\.0\.0\.1:(\d+);/.exec(await firstLine(proxy.stderr)) ?? [];
  const post = (port: number) => async () => {
    const { status, isReplay } = await call(agent, port);
    if (status !== 201 || isReplay) violations.add(`a fresh call got ${status}, replayed: ${isReplay}`);
  };
  // The two calls of the service that a guarded call waits for, a claim and its completion, without a proxy.
  const run = () =>
    main.client.run({ namespace: "charges", key: randomUUID(), fingerprint: 1 }, async () => {});
  const sides = { bare: post(upstreamPort), run, guarded: post(Number(proxyPort)) };
  const measured = await alternate(sides, { ...pace, callers: 1 }, signal);
  return [
    {
      figure: "P19",
      what: "p50 of a fresh call through `onceward http-proxy` − the bare service's",
      value: measured.guarded.p50Ms - measured.bare.p50Ms,
      unit: "ms",
      bar: { atMost: 1.5 },
      raw: {
        "proxy ms": measured.guarded.p50Ms,
        "bare ms": measured.bare.p50Ms,
        "claim and completion ms": measured.run.p50Ms,
      },
    },
  ];
};

function call(agent: Agent, port: number): Promise<{ readonly status: number; readonly isReplay: boolean }> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "idempotency-key": randomUUID() };
    const outgoing = request({ agent, port, host: "127.0.0.1", path: "/charges", method: "POST", headers });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      const isReplay = incoming.headers["idempotency-replayed"] !== undefined;
      incoming.resume().on("end", () => resolve({ status: incoming.statusCode ?? 0, isReplay }));
    });
    outgoing.end('{"amount":1}');
  });
}
