import { toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test } from "vitest";
import { ListApiKeysResponseSchema } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import { MAX_MESSAGE_BYTES } from "../../server/src/domain/limits.ts";
import { connectAdmin, describeAdministration } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { eventsOf } from "../support/database/audit.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createApiKey } from "../support/servers/tenants.ts";

const CALLER = { role: ApiKey_Role.CALLER };
const AN_HOUR_MS = 3_600_000;

describeAdministration("API keys", (world, transport) => {
  const callAs = (secret: string) => connectClient(world().server, secret, transport);

  test("a key works for its role and namespaces, and its secret is returned only once", async () => {
    const { admin, tenant } = await world().administeredTenant();
    const expiresAt = timestampFromMs(Date.now() + AN_HOUR_MS);
    const made = await admin.createApiKey({
      apiKey: { ...CALLER, label: "billing", namespaces: ["charges", "refunds", "charges"], expiresAt },
    });
    const { apiKey, secret } = made;
    expect(apiKey).toMatchObject({
      ...CALLER,
      label: "billing",
      namespaces: ["charges", "refunds"],
      expiresAt,
    });
    expect(apiKey?.createdAt).toBeDefined();
    expect(apiKey?.revokedAt).toBeUndefined();
    expect(parseApiKey(secret)?.id).toBe(apiKey?.id);
    const { apiKeys } = await admin.listApiKeys({});
    expect(apiKeys).toContainEqual(apiKey);
    await grant(callAs(secret));
    expect(await errorOf(callAs(secret).claim({ ...ORDER, namespace: "mails" }))).toMatchObject({
      reason: "NAMESPACE_DENIED",
    });
    const stored = await world().database.query(
      "select k::text as everything from api_keys k where tenant_id = $1",
      [tenant.id],
    );
    expect(JSON.stringify(stored)).not.toContain(parseApiKey(secret)?.secret);
  });

  test("an administrator's key administers", async () => {
    const { admin } = await world().administeredTenant();
    const { secret } = await admin.createApiKey({ apiKey: { role: ApiKey_Role.TENANT_ADMIN } });
    const other = connectAdmin(world().server, secret, transport);
    expect((await other.listApiKeys({})).apiKeys).toHaveLength(3);
    expect(await errorOf(callAs(secret).claim(ORDER))).toMatchObject({ reason: "ROLE_DENIED" });
  });

  test("a key's last use is shown to the hour; an unused key and a wrong secret show none", async () => {
    const { admin } = await world().administeredTenant();
    const [used, unused] = [
      await admin.createApiKey({ apiKey: CALLER }),
      await admin.createApiKey({ apiKey: CALLER }),
    ];
    const eager = await startTestServer(world().database.url, { ONCEWARD_USAGE_FLUSH: "100ms" });
    onTestFinished(() => eager.stop());
    const callEager = (secret: string) => connectClient(eager, secret, transport);
    await callEager(used.secret).lookup(ORDER);
    const wrong = callEager(unused.secret.replace(/.$/, (end) => (end === "A" ? "B" : "A")));
    expect(await errorOf(wrong.lookup(ORDER))).toMatchObject({ reason: "CREDENTIAL_INVALID" });
    const lastUse = async (id: string | undefined) => {
      const { apiKeys } = await admin.listApiKeys({});
      return apiKeys.find((key) => key.id === id)?.lastUsedAt;
    };
    await expect.poll(() => lastUse(used.apiKey?.id)).toBeDefined();
    const at = await lastUse(used.apiKey?.id);
    expect(Number(at?.seconds) % 3600).toBe(0);
    expect(await lastUse(unused.apiKey?.id)).toBeUndefined();
  });

  test("a replica that stops stores the last use of the keys", async () => {
    const { admin } = await world().administeredTenant();
    const { apiKey, secret } = await admin.createApiKey({ apiKey: CALLER });
    const stopping = await startTestServer(world().database.url, { ONCEWARD_USAGE_FLUSH: "60s" });
    await connectClient(stopping, secret, transport).lookup(ORDER);
    await stopping.stop();
    const { apiKeys } = await admin.listApiKeys({});
    expect(apiKeys.find(({ id }) => id === apiKey?.id)?.lastUsedAt).toBeDefined();
  });

  test("a key is refused when it expires", async () => {
    const { admin } = await world().administeredTenant();
    const expiresAt = timestampFromMs(Date.now() + AN_HOUR_MS);
    const { apiKey, secret } = await admin.createApiKey({ apiKey: { ...CALLER, expiresAt } });
    await world().database.query("update api_keys set expires_at = now() where id = $1", [apiKey?.id]);
    expect(await errorOf(callAs(secret).claim(ORDER))).toMatchObject({ reason: "CREDENTIAL_INVALID" });
    const { apiKeys } = await admin.listApiKeys({});
    expect(apiKeys.map(({ id }) => id)).toContain(apiKey?.id);
  });

  test("a key with a past expiry is refused", async () => {
    const { admin } = await world().administeredTenant();
    const expiresAt = timestampFromMs(Date.now() - AN_HOUR_MS);
    expect(await errorOf(admin.createApiKey({ apiKey: { ...CALLER, expiresAt } }))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["api_key.expires_at"],
    });
    expect((await admin.listApiKeys({})).apiKeys).toHaveLength(2);
  });

  test("an operator's role and malformed fields are refused, all in one error", async () => {
    const { admin } = await world().administeredTenant();
    const role = ApiKey_Role.OPERATOR;
    expect(await errorOf(admin.createApiKey({ apiKey: { role } }))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["api_key.role"],
    });
    const namespaces = Array.from({ length: 101 }, (_, index) => `n-${index}`);
    expect(
      await errorOf(
        admin.createApiKey({ apiKey: { label: "\n".repeat(129), namespaces: [...namespaces, "No"] } }),
      ),
    ).toMatchObject({
      fields: ["api_key.role", "api_key.label", "api_key.label", "api_key.namespaces", "api_key.namespaces"],
    });
    expect(await errorOf(admin.createApiKey({}))).toMatchObject({ fields: ["api_key", "api_key.role"] });
  });

  test("a revoked key is refused at once by the replica that revoked it; revoking can be repeated", async () => {
    const { admin, tenant } = await world().administeredTenant();
    const { apiKey, secret } = await admin.createApiKey({ apiKey: CALLER });
    await grant(callAs(secret));
    const id = apiKey?.id ?? "";
    const first = await admin.revokeApiKey({ id });
    expect(first.apiKey).toMatchObject({ id, revokedAt: expect.anything() });
    expect(await errorOf(callAs(secret).claim(ORDER))).toMatchObject({ reason: "CREDENTIAL_INVALID" });
    expect(await admin.revokeApiKey({ id })).toEqual(first);
    expect(await eventsOf(world().database, tenant, "RevokeApiKey")).toHaveLength(1);
  });

  test("other tenants' keys cannot be revoked, and the error does not say whether they exist", async () => {
    const mine = await world().administeredTenant();
    const theirs = await world().administeredTenant();
    const operators = await createApiKey(world().database, { role: "OPERATOR" });
    const unknown = await errorOf(mine.admin.revokeApiKey({ id: "0123456789abcdef" }));
    expect(unknown).toMatchObject({ code: "NotFound", reason: "API_KEY_NOT_FOUND" });
    for (const secret of [theirs.tenant.apiKey, operators]) {
      const id = parseApiKey(secret)?.id ?? "";
      expect(await errorOf(mine.admin.revokeApiKey({ id }))).toEqual(unknown);
    }
    expect(await errorOf(mine.admin.revokeApiKey({ id: "\u0000" }))).toEqual(unknown);
    await grant(theirs.caller);
    await grant(connectClient(world().server, mine.tenant.apiKey, transport));
  });

  test("are listed newest first; pages continue also while keys are created", async () => {
    const { admin } = await world().administeredTenant();
    const theirs = await world().administeredTenant();
    await theirs.admin.createApiKey({ apiKey: { ...CALLER, label: "theirs" } });
    const make = (label: string) => admin.createApiKey({ apiKey: { ...CALLER, label } });
    for (const label of ["1", "2", "3"]) await make(label);
    const first = await admin.listApiKeys({ pageSize: 2 });
    expect(first.apiKeys.map(({ label }) => label)).toEqual(["3", "2"]);
    await make("4");
    const next = (pageToken: string) => admin.listApiKeys({ pageSize: 1, pageToken });
    const rest = await readPages("apiKeys", next, first.nextPageToken);
    expect(rest.map(({ label }) => label)).toEqual(["1", "", ""]);
  });

  test("created at the same time are each listed once", async () => {
    const { admin, tenant } = await world().administeredTenant();
    for (let i = 0; i < 5; i++) await admin.createApiKey({ apiKey: CALLER });
    await world().database.query("update api_keys set created_at = now() where tenant_id = $1", [tenant.id]);
    const all = await readPages("apiKeys", (pageToken) => admin.listApiKeys({ pageSize: 2, pageToken }));
    expect(new Set(all.map(({ id }) => id)).size).toBe(7);
    expect(all).toHaveLength(7);
  });

  test("a page of them fits in a message, however many namespaces they name", async () => {
    const { admin, tenant } = await world().administeredTenant();
    await world().database.query(
      `insert into api_keys (id, tenant_id, role, digest, namespaces)
       select to_char(i, 'FM0000000000000000'), $1, 'CALLER', decode(repeat('00', 32), 'hex'),
              (select array_agg(rpad(i::text, 63, 'x')) from generate_series(101, 200) i)
         from generate_series(1, 1000) i`,
      [tenant.id],
    );
    const all = await readPages("apiKeys", async (pageToken) => {
      const reply = await admin.listApiKeys({ pageSize: 1000, pageToken });
      expect(toBinary(ListApiKeysResponseSchema, reply).byteLength).toBeLessThan(MAX_MESSAGE_BYTES);
      return reply;
    });
    expect(all).toHaveLength(1002);
  });

  test("creating and revoking are audit events, without secrets", async () => {
    const { admin, adminKey, tenant } = await world().administeredTenant();
    const { apiKey, secret } = await admin.createApiKey({
      apiKey: { ...CALLER, label: "billing", namespaces: ["charges"] },
    });
    const id = apiKey?.id ?? "";
    await admin.revokeApiKey({ id });
    const events = await eventsOf(world().database, tenant);
    const terms = { role: "CALLER", label: "billing", namespaces: ["charges"] };
    const actor = parseApiKey(adminKey)?.id;
    expect(events).toMatchObject([
      { action: "CreateApiKey", actor, target: `api key ${id}`, outcome: "DONE", before: null, after: terms },
      {
        action: "RevokeApiKey",
        actor,
        target: `api key ${id}`,
        before: terms,
        after: { ...terms, revokedAt: expect.any(String) },
      },
    ]);
    expect(JSON.stringify(events)).not.toContain(parseApiKey(secret)?.secret);
  });
});
