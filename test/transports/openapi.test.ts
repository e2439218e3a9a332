import { readFile } from "node:fs/promises";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { parse } from "yaml";
import { createApiKey, createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const FILE = new URL("../../server/openapi.yaml", import.meta.url);
const { database, server } = useServer();
const FINGERPRINT = Buffer.alloc(32, 1).toString("base64");

/** The parts of the document that these tests read. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<"get" | "post", Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Operation["responses"][string]>> };
}
interface Operation {
  readonly responses: Readonly<Record<string, { readonly $ref?: string; readonly content?: Content }>>;
}
type Content = Readonly<Record<string, { readonly schema: object }>>;

let text: string;
let document: Document;
let tenant: TestTenant;
let schemas: Ajv2020;

beforeAll(async () => {
  text = await readFile(FILE, "utf8");
  document = parse(text);
  schemas = new Ajv2020({ strict: false, allErrors: true });
  formats.default(schemas);
  schemas.addSchema(closed(document) as object, "openapi.yaml");
});

beforeEach(async () => {
  tenant = await createTenant(database);
});

/** Returns a copy in which no schema of an object allows fields that it does not list: no field goes undescribed. */
function closed(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closed);
  if (typeof part !== "object" || part === null) return part;
  const copy = Object.fromEntries(Object.entries(part).map(([name, value]) => [name, closed(value)]));
  const isObject = copy.type === "object" && "properties" in copy;
  return isObject ? { ...copy, additionalProperties: false } : copy;
}

function fetchPath(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${server.httpPort}${path}`, init);
}

/** Calls an RPC, expects a response that the document describes, and returns its status and body. */
async function call(rpc: string, request: object, key: string | undefined = tenant.apiKey) {
  const path = `/onceward.v1.${rpc}`;
  const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  const response = await fetchPath(path, { method: "POST", headers, body: JSON.stringify(request) });
  return await described(path, "post", response);
}

async function described(path: string, method: "get" | "post", response: Response) {
  const { status } = response;
  const body = JSON.parse(await response.text());
  const named = document.paths[path]?.[method].responses[status];
  const found = named?.$ref === undefined ? named : document.components.responses[status];
  const schema = found?.content?.[response.headers.get("content-type") ?? ""]?.schema;
  expect([path, status, schema]).toEqual([path, status, { $ref: expect.any(String) }]);
  const validate = schemas.compile({ $ref: `openapi.yaml${(schema as { $ref: string }).$ref}` });
  expect([path, validate(body), validate.errors ?? []]).toEqual([path, true, []]);
  return { status, body };
}

test("/openapi.yaml is the document, without a credential; a client that has it gets 304", async () => {
  const response = await fetchPath("/openapi.yaml");
  expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
    200,
    "application/yaml",
    text,
  ]);
  expect(response.headers.get("content-encoding")).toBe("gzip");
  const etag = response.headers.get("etag") ?? "";
  expect((await fetchPath("/openapi.yaml", { headers: { "if-none-match": etag } })).status).toBe(304);
  const refused = await fetchPath("/openapi.yaml", { method: "POST" });
  expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

test("every outcome and refusal of the idempotency service is as the document describes it", async () => {
  const id = { namespace: "charges", key: "order-1" };
  const claim = { ...id, fingerprint: FINGERPRINT, owner: "worker-1", claimId: "c-1" };
  const { body } = await call("IdempotencyService/Claim", claim);
  const held = { ...id, fencingToken: body.claimed.fencingToken };
  const other = { ...claim, claimId: "c-2" };
  expect((await call("IdempotencyService/Claim", other)).body).toHaveProperty("inProgress");
  const checkpoint = { name: "charged", state: "Y2gx" };
  await call("IdempotencyService/ExtendLease", { ...held, checkpoint });
  const result = { kind: "KIND_SUCCESS", payload: "Y2gx", metadata: { status: "201" } };
  await call("IdempotencyService/Complete", { ...held, result });
  expect((await call("IdempotencyService/Claim", other)).body).toHaveProperty("completed");
  const path = "/onceward.v1.IdempotencyService/Lookup";
  const query = new URLSearchParams({ encoding: "json", message: JSON.stringify(id) });
  const headers = { authorization: `Bearer ${tenant.apiKey}` };
  const found = await described(path, "get", await fetchPath(`${path}?${query}`, { headers }));
  expect(found.body.record).toMatchObject({ state: "STATE_COMPLETED", attempt: 1 });
  const items = [{ claim: other }, { release: { ...held, fencingToken: "99" } }, { lookup: id }];
  expect((await call("IdempotencyService/Batch", { items })).body.items).toHaveLength(3);

  const mismatch = { ...other, fingerprint: Buffer.alloc(32, 2).toString("base64") };
  const statusOf = async (rpc: string, request: object, key?: string) =>
    (await call(`IdempotencyService/${rpc}`, request, key)).status;
  expect(await statusOf("Claim", mismatch)).toBe(400);
  expect(await statusOf("Claim", { namespace: "" })).toBe(400);
  expect(await statusOf("Lookup", id, "")).toBe(401);
  expect(await statusOf("Release", { ...held, fencingToken: "99" })).toBe(409);
  expect(await statusOf("Release", { ...held, key: "unknown" })).toBe(404);
});

test("the answers of administration are as the document describes them", async () => {
  const admin = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
  const operator = await createApiKey(database, { role: "OPERATOR" });
  await call("IdempotencyService/Claim", { namespace: "charges", key: "order-1" });
  expect((await call("IdentityService/WhoAmI", {})).body).toMatchObject({ tenant: tenant.name });
  for (const rpc of [
    "GetTenant",
    "ListNamespaces",
    "ListRecords",
    "ListApiKeys",
    "GetUsage",
    "ListAuditEvents",
  ])
    expect([rpc, (await call(`TenantAdminService/${rpc}`, {}, admin)).status]).toEqual([rpc, 200]);
  const record = { namespace: "charges", key: "order-1" };
  expect((await call("TenantAdminService/GetRecord", record, admin)).body).toHaveProperty("attempts");
  for (const rpc of ["ListTenants", "GetServerInfo", "Diagnose", "ListReplicas"])
    expect([rpc, (await call(`OperatorService/${rpc}`, {}, operator)).status]).toEqual([rpc, 200]);
  expect((await call("OperatorService/ListTenants", {}, admin)).status).toBe(403);
});
