import { expect, test } from "vitest";
import { formatApiKey, generateApiKey, parseApiKey } from "../../server/src/access/api-key.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, lookUp, ORDER, success } from "../support/calls/verbs.ts";
import { describeContract } from "../support/servers/contract.ts";
import { createApiKey } from "../support/servers/tenants.ts";

const OPERATOR_KEY = formatApiKey(generateApiKey());

describeContract(
  "A credential",
  (contract) => {
    const invalid = {
      code: "Unauthenticated",
      reason: "CREDENTIAL_INVALID",
      domain: "onceward",
      message: expect.any(String),
      metadata: {},
      fields: [],
      retryable: false,
    };

    test("that is unknown or has another secret is refused alike, a malformed one otherwise", async () => {
      const { client, tenant } = await contract.newCaller();
      const known = parseApiKey(tenant.apiKey);
      // Caches the valid key: the cache must not accept a similar one.
      await grant(client);
      const messagesOf = async (wrong: readonly string[]) => {
        const errors = wrong.map((apiKey) => errorOf(contract.connect(apiKey).claim(ORDER)));
        const refused = await Promise.all(errors);
        expect(refused).toEqual(wrong.map(() => invalid));
        return new Set(refused.map(({ message }) => message));
      };
      const unknown = await messagesOf([
        formatApiKey(generateApiKey()),
        formatApiKey({ ...generateApiKey(), id: known?.id ?? "" }),
        formatApiKey({ ...generateApiKey(), id: parseApiKey(OPERATOR_KEY)?.id ?? "" }),
      ]);
      expect(unknown.size).toBe(1);
      const malformed = ["nonsense", "ow_0123456789abcdef", `${tenant.apiKey}x`, tenant.apiKey.toUpperCase()];
      for (const message of await messagesOf(malformed)) expect(message).toContain("ow_<16 characters>");
    });

    test("of another scheme is refused", async () => {
      const headers = { authorization: "Basic dXNlcjpwYXNzd29yZA==" };
      const call = contract.connect(undefined).claim(ORDER, { headers });
      expect(await errorOf(call)).toEqual(invalid);
    });

    test("is refused in another spelling, and one that is too long", async () => {
      const { client, tenant } = await contract.newCaller();
      await grant(client);
      const spellings = [`Bearer  ${tenant.apiKey}`, `Bearer ${" ".repeat(100)}${tenant.apiKey}`];
      for (const authorization of [...spellings, `Bearer ${"a".repeat(9000)}`]) {
        const call = contract.connect(undefined).claim(ORDER, { headers: { authorization } });
        expect(await errorOf(call)).toEqual(invalid);
      }
    });

    test("works until it expires by the database's clock, and no longer", async () => {
      const { tenant } = await contract.newCaller();
      const client = contract.connect(tenant.apiKey);
      const { id } = parseApiKey(tenant.apiKey) ?? { id: "" };
      await contract.database.query(
        "update api_keys set expires_at = clock_timestamp() + interval '1 second' where id = $1",
        [id],
      );
      const isPast = async () => {
        const [row] = await contract.database.query<{ past: boolean }>(
          "select expires_at <= clock_timestamp() as past from api_keys where id = $1",
          [id],
        );
        return row?.past;
      };
      await grant(client);
      await expect.poll(isPast, { interval: 10, timeout: 30_000 }).toBe(true);
      expect(await errorOf(client.lookup(ORDER))).toEqual(invalid);
    });

    test("that was revoked, or has expired, is refused like an unknown one", async () => {
      const { tenant } = await contract.newCaller();
      for (const column of ["revoked_at", "expires_at"]) {
        const apiKey = await createApiKey(contract.database, { tenantId: tenant.id, role: "CALLER" });
        const { id } = parseApiKey(apiKey) ?? { id: "" };
        await contract.database.query(`update api_keys set ${column} = now() where id = $1`, [id]);
        expect(await errorOf(contract.connect(apiKey).claim(ORDER))).toEqual(invalid);
      }
    });

    test("may be one of two of the same tenant, for rotation", async () => {
      const { client, tenant } = await contract.newCaller();
      const second = await createApiKey(contract.database, { tenantId: tenant.id, role: "CALLER" });
      const { fencingToken } = await grant(client);
      await contract.connect(second).release({ ...ORDER, fencingToken });
    });

    test("of another role is refused by this service", async () => {
      const { tenant } = await contract.newCaller();
      const others = [
        await createApiKey(contract.database, { tenantId: tenant.id, role: "TENANT_ADMIN" }),
        await createApiKey(contract.database, { role: "OPERATOR" }),
        OPERATOR_KEY,
      ];
      for (const apiKey of others) {
        const client = contract.connect(apiKey);
        const denied = { code: "PermissionDenied", reason: "ROLE_DENIED" };
        expect(await errorOf(client.claim(ORDER))).toMatchObject(denied);
        expect(await errorOf(client.batch({}))).toMatchObject(denied);
      }
    });

    test("that is limited to namespaces is accepted only for these, in every RPC", async () => {
      const { client: unlimited, tenant } = await contract.newCaller();
      const apiKey = await createApiKey(contract.database, {
        tenantId: tenant.id,
        role: "CALLER",
        namespaces: ["charges", "refunds"],
      });
      const client = contract.connect(apiKey);
      await grant(client);
      await grant(client, { namespace: "refunds" });
      const mails = { ...ORDER, namespace: "mails" };
      const { fencingToken } = await grant(unlimited, mails);
      const denied = { code: "PermissionDenied", reason: "NAMESPACE_DENIED" };
      for (const call of [
        client.claim(mails),
        client.complete({ ...mails, fencingToken, result: success("done") }),
        client.release({ ...mails, fencingToken }),
        client.extendLease({ ...mails, fencingToken }),
        client.lookup(mails),
      ]) {
        expect(await errorOf(call)).toMatchObject(denied);
      }
      const { items } = await client.batch({
        items: [{ request: { case: "lookup", value: mails } }, { request: { case: "lookup", value: ORDER } }],
      });
      expect(items.map((item) => item.response.case)).toEqual(["error", "lookup"]);
    });

    test("cannot detect another tenant's records", async () => {
      const mine = await contract.newCaller();
      const theirs = await contract.newCaller();
      const { fencingToken } = await grant(theirs.client, { owner: "theirs" });
      const never = { ...ORDER, key: "never" };
      for (const id of [ORDER, never]) expect((await mine.client.lookup(id)).record).toBeUndefined();
      const complete = { fencingToken, result: success("done") };
      expect(await errorOf(mine.client.complete({ ...ORDER, ...complete }))).toEqual(
        await errorOf(mine.client.complete({ ...never, ...complete })),
      );
      expect(await grant(mine.client, { owner: "mine" })).toMatchObject({ attempt: 1 });
      expect(await lookUp(theirs.client)).toMatchObject({ owner: "theirs", fencingToken });
    });
  },
  { ONCEWARD_OPERATOR_KEY: OPERATOR_KEY },
);

describeContract("On a server with an anonymous tenant", (contract) => {
  /** Returns a client without a credential, of a server that treats its calls as those of a tenant. */
  async function anonymousClient(tenantName: string) {
    const replica = await contract.newReplica({ ONCEWARD_ANONYMOUS_TENANT: tenantName });
    return connectClient(replica, undefined, contract.transport);
  }

  test("a call without a credential acts as that tenant's caller", async () => {
    const { client, tenant } = await contract.newCaller();
    const anonymous = await anonymousClient(tenant.name);
    const { fencingToken } = await grant(anonymous);
    expect(await lookUp(client)).toMatchObject({ fencingToken });
  });

  test("the tenant is created if it does not exist", async () => {
    await grant(await anonymousClient(`made-for-${contract.transport.length}`));
  });

  test("a suspended tenant stays suspended", async () => {
    const { tenant } = await contract.newCaller();
    await contract.database.query("update tenants set suspended_at = now() where id = $1", [tenant.id]);
    const anonymous = await anonymousClient(tenant.name);
    expect(await errorOf(anonymous.claim(ORDER))).toMatchObject({ reason: "TENANT_SUSPENDED" });
  });

  test("an invalid credential is still refused", async () => {
    const { tenant } = await contract.newCaller();
    const anonymous = await anonymousClient(tenant.name);
    const headers = { authorization: "Bearer nonsense" };
    expect(await errorOf(anonymous.claim(ORDER, { headers }))).toMatchObject({
      reason: "CREDENTIAL_INVALID",
    });
  });
});
