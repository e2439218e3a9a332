import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listen } from "../adapters/http/listen.ts";
import { createTenant } from "../helpers/servers/tenants.ts";
import { useServer } from "../helpers/servers/use-server.ts";
import { serveWorker, type Workerd } from "./workerd/workerd.ts";

// workerd gives each request its own I/O context: a request that awaits another one's fetch or timer never ends.

const { database, server } = useServer();
let workerd: Workerd;
let stopTokens: () => Promise<void>;

beforeAll(async () => {
  const { apiKey } = await createTenant(database);
  const tokens = await listen(createServer((_, response) => response.end(apiKey)));
  stopTokens = tokens.close;
  workerd = await serveWorker(await bundleWorker(), {
    ADDRESS: `http://127.0.0.1:${server.httpPort}`,
    API_KEY: apiKey,
    TOKEN_URL: `http://127.0.0.1:${tokens.port}`,
  });
});

afterAll(async () => {
  await workerd?.[Symbol.asyncDispose]();
  await stopTokens?.();
});

async function bundleWorker(): Promise<string> {
  const bundle = await rolldown({
    input: fileURLToPath(new URL("workerd/worker.ts", import.meta.url)),
    platform: "browser",
    resolve: { conditionNames: ["@onceward/source", "workerd", "browser", "import", "default"] },
  });
  const { output } = await bundle.generate({ format: "esm" });
  await bundle.close();
  return output[0].code;
}

interface Answer {
  readonly value: string;
  readonly replayed: boolean;
}

/** Sends requests at the same time. A request that workerd ends is answered with its error's text. */
async function requestAll(queries: readonly string[]): Promise<readonly (Answer | string)[]> {
  return await Promise.all(queries.map(request));
}

async function request(query: string): Promise<Answer | string> {
  const response = await fetch(`${workerd.origin}/?${query}`);
  if (response.ok) return (await response.json()) as Answer;
  return `${response.status} ${await response.text()}\n${workerd.log()}`;
}

test.each(["key", "token"])(
  "24 concurrent requests run 24 operations, with the credential %s",
  async (kind) => {
    const queries = Array.from({ length: 24 }, (_, index) => `client=${kind}&key=${kind}-${index}`);
    const first = await requestAll(queries);
    expect(first).toEqual(queries.map(() => ({ value: expect.any(String), replayed: false })));
    const repeats = await requestAll(queries);
    expect(repeats).toEqual(first.map((answer) => ({ ...Object(answer), replayed: true })));
  },
);

test("8 concurrent requests with one key run its operation once", async () => {
  const answers = await requestAll(Array.from({ length: 8 }, () => "key=shared"));
  const value = Object(answers[0]).value;
  expect(answers.filter((answer) => Object(answer).replayed === false)).toHaveLength(1);
  expect(answers).toEqual(answers.map(() => ({ value, replayed: expect.any(Boolean) })));
});

test("concurrent requests repeat their calls to an unreachable service, each by its own timers", async () => {
  const queries = Array.from({ length: 8 }, (_, index) => `client=unreachable&key=unreachable-${index}`);
  expect(await requestAll(queries)).toEqual(queries.map(() => ({ reason: "NO_ANSWER" })));
});
