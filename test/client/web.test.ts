import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { createOnceward as createNodeOnceward } from "@onceward/client";
import { rolldown } from "rolldown";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { deriveKey } from "../../clients/typescript/src/keys/keys.ts";
import type * as Web from "../../clients/typescript/src/web.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const ENTRY = fileURLToPath(new URL("../../clients/typescript/src/web.ts", import.meta.url));
/** What a page pays for the whole client, everything exported, with connect and Protobuf. */
const MAX_GZIP_BYTES = 50 * 1024;

const { database, server } = useServer();
let bundled: string;
let imports: readonly string[];
let web: typeof Web;

beforeAll(async () => {
  const bundle = await rolldown({
    input: ENTRY,
    platform: "browser",
    resolve: { conditionNames: ["@onceward/source", "browser", "import", "default"] },
  });
  const { output } = await bundle.generate({ format: "iife", name: "web", minify: true });
  await bundle.close();
  bundled = output[0].code;
  imports = output.flatMap((chunk) => (chunk.type === "chunk" ? chunk.imports : []));
  web = runAsPage(bundled);
});

/** Runs a script where there is what browsers have, as far as it uses it, and nothing of Node's. */
function runAsPage(script: string): typeof Web {
  const { TextEncoder, TextDecoder, URL, Headers, AbortController, fetch, crypto, performance } = globalThis;
  const { btoa, atob, setTimeout, clearTimeout } = globalThis;
  // The classes that values are told by, so that the test and the page mean the same ones.
  const shared = { Error, TypeError, Uint8Array, ArrayBuffer };
  const page = createContext({
    ...{ TextEncoder, TextDecoder, URL, Headers, AbortController, fetch, crypto, performance },
    ...{ btoa, atob, setTimeout, clearTimeout },
    ...shared,
    console: { warn: vi.fn() },
  });
  runInContext(`${script};globalThis.web = web;`, page);
  return page.web;
}

async function newOnceward() {
  const { apiKey } = await createTenant(database);
  const onceward = web.createOnceward({ address: `http://127.0.0.1:${server.httpPort}`, apiKey });
  onTestFinished(() => onceward.close());
  const node = createNodeOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
  onTestFinished(() => node.close());
  return { onceward, node, apiKey };
}

const operation = { namespace: "charges", key: "order-1" };

test("the bundle for browsers has no Node modules and is small", () => {
  expect(imports).toEqual([]);
  expect(bundled).not.toMatch(/\b(?:require|import)\(|\bfrom\s*["'`]node:/);
  expect(gzipSync(bundled).byteLength).toBeLessThan(MAX_GZIP_BYTES);
});

test("a page and a server see the same operation", async () => {
  const { onceward, node } = await newOnceward();
  const fingerprint = { amount: 100, to: "Ädä" };
  const first = await onceward.runDetailed({ ...operation, fingerprint }, (claim) => ({
    derived: claim.deriveKey("provider"),
    attempt: claim.attempt,
  }));
  expect(first).toMatchObject({ replayed: false, value: { attempt: 1 } });
  const repeat = await node.runDetailed({ ...operation, fingerprint }, vi.fn());
  expect(repeat).toMatchObject({ replayed: true, value: first.value });
  expect(first.value.derived).toBe(deriveKey(operation.namespace, operation.key, "provider"));
});

test("a page's errors are of their reasons' classes", async () => {
  const { onceward } = await newOnceward();
  await onceward.run({ ...operation, fingerprint: 1 }, () => "charged");
  const mismatched = onceward.run({ ...operation, fingerprint: 2 }, vi.fn());
  await expect(mismatched).rejects.toBeInstanceOf(web.FingerprintMismatchError);
  const tooLong = onceward.run({ ...operation, key: "x".repeat(256) }, vi.fn());
  await expect(tooLong).rejects.toMatchObject({ name: "InvalidRequestError", code: undefined });
  await using stranger = web.createOnceward({
    address: `http://127.0.0.1:${server.httpPort}`,
    apiKey: "ow_x_y",
  });
  await expect(stranger.run(operation, vi.fn())).rejects.toBeInstanceOf(web.CredentialInvalidError);
});

test("a page waits for another holder, and stores failures", async () => {
  const { onceward, node } = await newOnceward();
  const held = Promise.withResolvers<string>();
  const holder = node.run(operation, () => held.promise);
  await vi.waitFor(async () => expect((await node.calls.lookup(operation)).record).toBeDefined(), 30_000);
  const waiter = onceward.run(operation, vi.fn());
  held.resolve("once");
  expect([await holder, await waiter]).toEqual(["once", "once"]);
  const failing = () => {
    throw new web.TerminalError("card declined", { code: 51 });
  };
  const declined = { ...operation, key: "order-2" };
  await expect(onceward.run(declined, failing)).rejects.toThrow("card declined");
  await expect(node.run(declined, vi.fn())).rejects.toMatchObject({ details: { code: 51 } });
});

test("without a network a page runs nothing, and it survives answers of other servers", async () => {
  const { apiKey } = await createTenant(database);
  let answers: Response[] = [];
  const fetch = async () => {
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError("Failed to fetch");
    return answer;
  };
  const options = { address: "http://127.0.0.1:1", apiKey, timeoutMs: 200, fetch };
  await using onceward = web.createOnceward(options);
  const fn = vi.fn();
  await expect(onceward.run(operation, fn)).rejects.toMatchObject({ reason: "NO_ANSWER", code: 14 });
  answers = [new Response("<html>Bad Gateway</html>", { status: 502 })];
  await expect(onceward.run(operation, fn)).rejects.toMatchObject({ reason: "NO_ANSWER" });
  expect(answers).toEqual([]);
  expect(fn).not.toHaveBeenCalled();
});
