import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BrowserAnswer, browse, postKey } from "../../support/console/browser.ts";
import { useDatabase } from "../../support/database/use-database.ts";
import { exchange } from "../../support/network/raw-socket.ts";
import { freePort } from "../../support/redis/redis.ts";
import { startTestServer, type TestServer } from "../../support/servers/server.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { startServerOfTest } from "../../support/servers/use-server.ts";

const INDEX = "<!doctype html><title>Onceward</title>";
const SCRIPT = `console.log(${JSON.stringify("x".repeat(2000))});`;
const SCRIPT_PATH = "/console/assets/app-4f3c2a1b.js";

const database = useDatabase();
let dir: string;
let server: TestServer;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "ow-console-"));
  await mkdir(join(dir, "assets"));
  await writeFile(join(dir, "index.html"), INDEX);
  await writeFile(join(dir, "assets/app-4f3c2a1b.js"), SCRIPT);
  await writeFile(join(dir, "assets/app-4f3c2a1b.js.br"), brotliCompressSync(SCRIPT));
  await writeFile(join(dir, "assets/app-4f3c2a1b.js.gz"), gzipSync(SCRIPT));
  await writeFile(join(dir, "../ow-console-secret.txt"), "secret");
  server = await startTestServer(database.url, {}, { consoleDir: dir });
});

afterAll(async () => {
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
  await rm(join(dir, "../ow-console-secret.txt"), { force: true });
});

function get(path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") {
  return browse(server, path, { method, headers });
}

const startAnother = (env: Record<string, string>, consoleDir = dir) =>
  startServerOfTest(database.url, env, { consoleDir });

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

function headersOf({ headers }: BrowserAnswer, ...names: readonly string[]) {
  return names.map((name) => headers[name]);
}

test("the page is served for every screen, fresh, and under a policy that allows nothing else", async () => {
  expect(headersOf(await get("/console"), "location")).toEqual(["/console/"]);
  expect((await get("/console")).status).toBe(308);
  expect((await get("/")).status).toBe(307);
  expect(headersOf(await get("/"), "location")).toEqual(["/console/"]);
  for (const path of [
    "/console/",
    "/console/index.html",
    "/console/records/a/b?state=X",
    "/console/%2e%2e/x",
  ]) {
    const answer = await get(path);
    expect([path, answer.status, answer.body.toString()]).toEqual([path, 200, INDEX]);
    expect(headersOf(answer, "content-type", "cache-control", "content-security-policy")).toEqual([
      "text/html; charset=utf-8",
      "no-cache",
      POLICY,
    ]);
    const others = ["x-content-type-options", "referrer-policy", "cross-origin-opener-policy"];
    expect(headersOf(answer, ...others, "strict-transport-security")).toEqual([
      "nosniff",
      "no-referrer",
      "same-origin",
      undefined,
    ]);
  }
  const { headers } = await get("/console/");
  const again = await get("/console/", { "if-none-match": `"other", W/${headers.etag}` });
  expect([again.status, again.body.byteLength]).toEqual([304, 0]);
  expect((await get("/console/", { "if-none-match": '"other"' })).status).toBe(200);
  const head = await get("/console/", {}, "HEAD");
  expect([head.status, head.body.byteLength, head.headers["content-length"]]).toEqual([
    200,
    0,
    `${INDEX.length}`,
  ]);
});

test("assets are cached for a year, in the smallest encoding that the browser accepts", async () => {
  const sizes = { br: brotliCompressSync(SCRIPT).length, gzip: gzipSync(SCRIPT).length };
  const tags = new Set<unknown>();
  for (const [accepted, encoding, size] of [
    ["gzip, deflate, br, zstd", "br", sizes.br],
    ["GZIP;q=0.5, br;q=0", "gzip", sizes.gzip],
    ["br;q=0.000", undefined, SCRIPT.length],
    ["identity", undefined, SCRIPT.length],
  ] as const) {
    const answer = await get(SCRIPT_PATH, { "accept-encoding": accepted });
    expect(
      headersOf(answer, "content-encoding", "content-length", "cache-control", "content-type", "vary"),
    ).toEqual([
      encoding,
      String(size),
      "public, max-age=31536000, immutable",
      "text/javascript; charset=utf-8",
      "Accept-Encoding",
    ]);
    expect(answer.body.byteLength).toBe(size);
    tags.add(answer.headers.etag);
  }
  expect(tags.size).toBe(3);
});

test("no request names another file, and paths that are not known have no answer", async () => {
  for (const path of [
    "/console/assets/none.js",
    `${SCRIPT_PATH}.br`,
    "/console/assets/../../ow-console-secret.txt",
    "/console/assets/..%2f..%2fow-console-secret.txt",
    "/console/assets/%00",
    "/console/api/",
    "/console/api/constructor",
    "/console/api/oidc/start",
    "/consoles",
    "/Console/",
  ]) {
    expect([path, (await get(path)).status]).toEqual([path, 404]);
  }
  const raw = await exchange(
    server.httpPort,
    "GET /console/../ow-console-secret.txt HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
  );
  expect(raw).not.toContain("\r\n\r\nsecret");
  for (const [path, method, allow] of [
    ["/console/", "POST", "GET, HEAD"],
    ["/", "POST", "GET, HEAD"],
    ["/console/api/session", "GET", "POST, DELETE"],
    ["/console/api/sessions", "PUT", "DELETE"],
  ] as const) {
    const answer = await get(path, {}, method);
    expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
    expect((answer.json as { message: string }).message).toContain(allow);
  }
});

test("a large body for a page is not waited for", async () => {
  const head = "POST /console/ HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n";
  const answer = await exchange(server.httpPort, head);
  expect(answer).toMatch(/^HTTP\/1\.1 405 .*connection: close/is);
  // The request did not time out.
  expect(answer).not.toContain("408");
});

test("a page not yet built says how to build it; a switched off console has no answers", async () => {
  const unbuilt = await startAnother({}, join(dir, "none"));
  const answer = await browse(unbuilt, "/console/");
  expect([answer.status, answer.body.toString()]).toEqual([
    503,
    expect.stringContaining("npm run build:console"),
  ]);
  expect((await postKey(unbuilt, (await createTenant(database)).apiKey)).status).toBe(204);

  const off = await startAnother({ ONCEWARD_CONSOLE: "false" });
  for (const path of ["/", "/console", "/console/", "/console/api/sign-in-options", SCRIPT_PATH]) {
    const { status, json } = await browse(off, path);
    expect([path, status, json]).toMatchObject([path, 404, { code: "unimplemented" }]);
  }
});

test("the page learns the server's own port for gRPC, unless the system chose it", async () => {
  expect((await get("/console/api/sign-in-options")).json).toEqual({ oidc: false });
  const grpcPort = await freePort();
  const fixed = await startAnother({ ONCEWARD_GRPC_PORT: String(grpcPort) });
  expect((await browse(fixed, "/console/api/sign-in-options")).json).toEqual({ oidc: false, grpcPort });
});

test("browsers that reach the console by https keep to it", async () => {
  const secure = await startAnother({ ONCEWARD_CONSOLE_ORIGIN: "https://onceward.example" });
  expect(headersOf(await browse(secure, "/console/"), "strict-transport-security")).toEqual([
    "max-age=31536000",
  ]);
});
