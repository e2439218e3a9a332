import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { formatApiKey, generateApiKey, parseApiKey } from "../../server/src/access/api-key.ts";
import { connectOperator, describeAdministration } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { createApiKey } from "../support/servers/tenants.ts";

const CONFIGURED = generateApiKey();
const AN_HOUR_MS = 3_600_000;

describeAdministration(
  "Operators' API keys",
  { env: { ONCEWARD_OPERATOR_KEY: formatApiKey(CONFIGURED) } },
  (world, transport) => {
    const operateAs = (secret: string) => connectOperator(world().server, secret, transport);

    async function eventsOf(id: string, action: string) {
      const operator = await world().operator();
      const { events } = await operator.listAuditEvents({ action });
      return events.filter(({ target }) => target === `api key ${id}`);
    }

    test("a key may call this service, and its secret is returned only once", async () => {
      const operator = await world().operator();
      const expiresAt = timestampFromMs(Date.now() + AN_HOUR_MS);
      const { apiKey, secret } = await operator.createOperatorApiKey({
        apiKey: { role: ApiKey_Role.OPERATOR, label: "on call", expiresAt },
      });
      expect(apiKey).toMatchObject({
        role: ApiKey_Role.OPERATOR,
        label: "on call",
        namespaces: [],
        expiresAt,
      });
      expect(parseApiKey(secret)?.id).toBe(apiKey?.id);
      const { apiKeys } = await operateAs(secret).listOperatorApiKeys({});
      expect(apiKeys).toContainEqual(apiKey);
    });

    test("an empty request creates a key without a label that does not expire", async () => {
      const { apiKey } = await (await world().operator()).createOperatorApiKey({});
      expect(apiKey).toMatchObject({ role: ApiKey_Role.OPERATOR, label: "" });
      expect(apiKey?.expiresAt).toBeUndefined();
    });

    test("malformed fields are refused, all in one error", async () => {
      const operator = await world().operator();
      const apiKey = { role: ApiKey_Role.CALLER, label: "x".repeat(129), namespaces: ["charges"] };
      expect(await errorOf(operator.createOperatorApiKey({ apiKey }))).toMatchObject({
        reason: "INVALID_REQUEST",
        fields: ["api_key.role", "api_key.label", "api_key.namespaces"],
      });
      const expiresAt = timestampFromMs(Date.now() - AN_HOUR_MS);
      expect(await errorOf(operator.createOperatorApiKey({ apiKey: { expiresAt } }))).toMatchObject({
        fields: ["api_key.expires_at"],
      });
    });

    test("a revoked key is refused at once by the replica that revoked it; revoking can be repeated", async () => {
      const operator = await world().operator();
      const { apiKey, secret } = await operator.createOperatorApiKey({});
      const id = apiKey?.id ?? "";
      await operateAs(secret).getServerInfo({});
      const first = await operator.revokeOperatorApiKey({ id });
      expect(first.apiKey).toMatchObject({ id, revokedAt: expect.anything() });
      expect(await errorOf(operateAs(secret).getServerInfo({}))).toMatchObject({
        reason: "CREDENTIAL_INVALID",
      });
      expect(await operator.revokeOperatorApiKey({ id })).toEqual(first);
      expect(await eventsOf(id, "RevokeOperatorApiKey")).toHaveLength(1);
    });

    test("an operator may revoke its own key", async () => {
      const key = await createApiKey(world().database, { role: "OPERATOR" });
      await operateAs(key).revokeOperatorApiKey({ id: parseApiKey(key)?.id ?? "" });
      expect(await errorOf(operateAs(key).getServerInfo({}))).toMatchObject({ reason: "CREDENTIAL_INVALID" });
    });

    test("neither a tenant's key nor the configured one can be revoked, and neither is listed", async () => {
      const { tenant } = await world().administeredTenant();
      const operator = await world().operator();
      const ids = [parseApiKey(tenant.apiKey)?.id ?? "", CONFIGURED.id, "0123456789abcdef", "", "\u0000"];
      for (const id of ids) {
        expect(await errorOf(operator.revokeOperatorApiKey({ id }))).toMatchObject({
          code: "NotFound",
          reason: "API_KEY_NOT_FOUND",
        });
      }
      await operateAs(formatApiKey(CONFIGURED)).getServerInfo({});
      const { apiKeys } = await operator.listOperatorApiKeys({ pageSize: 1000 });
      for (const id of ids) expect(apiKeys.map((key) => key.id)).not.toContain(id);
    });

    test("are listed newest first, page by page, each once", async () => {
      const operator = await world().operator();
      for (const label of ["1", "2", "3"]) await operator.createOperatorApiKey({ apiKey: { label } });
      const page = (pageToken: string) => operator.listOperatorApiKeys({ pageSize: 2, pageToken });
      const all = await readPages("apiKeys", page);
      expect(all.slice(0, 3).map(({ label }) => label)).toEqual(["3", "2", "1"]);
      expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    });

    test("creating and revoking are audit events of no tenant, without secrets", async () => {
      const key = await createApiKey(world().database, { role: "OPERATOR" });
      const { apiKey, secret } = await operateAs(key).createOperatorApiKey({ apiKey: { label: "on call" } });
      const id = apiKey?.id ?? "";
      await operateAs(key).revokeOperatorApiKey({ id });
      const [made] = await eventsOf(id, "CreateOperatorApiKey");
      const [revoked] = await eventsOf(id, "RevokeOperatorApiKey");
      const terms = { role: "OPERATOR", label: "on call" };
      const by = { tenant: "", actor: parseApiKey(key)?.id };
      expect(made).toMatchObject({ ...by, after: terms });
      expect(revoked).toMatchObject({
        ...by,
        before: terms,
        after: { ...terms, revokedAt: expect.any(String) },
      });
      const told = JSON.stringify([made?.after, revoked?.before, revoked?.after]);
      expect(told).not.toContain(parseApiKey(secret)?.secret);
    });
  },
);
