import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  Policy_OnLeaseExpiry,
  type PolicySchema,
} from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { type AdminWorld, describeAdministrationOverAll } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { seconds } from "../support/calls/verbs.ts";
import { eventsOf } from "../support/database/audit.ts";
import { openConnection, untilBlocked } from "../support/database/connections.ts";
import { secondsOf } from "../support/database/time.ts";
import { partsOf } from "../support/servers/tenants.ts";

const HOUR_S = 3600;
const KEY_RETENTION = { paths: ["policy.key_retention"] };

describeAdministrationOverAll("a policy", (world: () => AdminWorld) => {
  describe("of a tenant", () => {
    test("is the service's default until a field is set", async () => {
      const { admin, tenant } = await world().administeredTenant();
      const { tenant: found } = await admin.getTenant({});
      expect(found?.name).toBe(tenant.name);
      expect(found?.policy).toEqual(
        expect.objectContaining({ onLeaseExpiry: Policy_OnLeaseExpiry.UNSPECIFIED }),
      );
      expect(found?.policy?.keyRetention).toBeUndefined();
      expect(secondsOf(found?.effectivePolicy?.keyRetention)).toBe(72 * HOUR_S);
      expect(found?.effectivePolicy?.onLeaseExpiry).toBe(Policy_OnLeaseExpiry.RECLAIM);
      expect(found?.effectivePolicy?.maxResultBytes).toBe(65_536);
    });

    test("is updated in the fields that the mask names, and keeps the others", async () => {
      const { admin } = await world().administeredTenant({ key_retention_s: 600, max_result_bytes: 10 });
      const { tenant } = await admin.updateTenant({
        tenant: { policy: { keyRetention: seconds(HOUR_S), requireFingerprint: true } },
        updateMask: KEY_RETENTION,
      });
      expect(secondsOf(tenant?.policy?.keyRetention)).toBe(HOUR_S);
      expect(tenant?.policy?.maxResultBytes).toBe(10);
      expect(tenant?.policy?.requireFingerprint).toBeUndefined();
    });

    test("is updated in its set fields without a mask; masked and unset fields become unset", async () => {
      const { admin } = await world().administeredTenant({ key_retention_s: 600 });
      const set = await admin.updateTenant({
        tenant: { policy: { onLeaseExpiry: Policy_OnLeaseExpiry.HOLD, requireFingerprint: false } },
      });
      expect(set.tenant?.policy?.onLeaseExpiry).toBe(Policy_OnLeaseExpiry.HOLD);
      expect(set.tenant?.policy?.requireFingerprint).toBe(false);
      expect(secondsOf(set.tenant?.policy?.keyRetention)).toBe(600);
      const unset = await admin.updateTenant({ tenant: {}, updateMask: { paths: ["*"] } });
      expect(unset.tenant?.policy?.keyRetention).toBeUndefined();
      expect(unset.tenant?.policy?.onLeaseExpiry).toBe(Policy_OnLeaseExpiry.UNSPECIFIED);
    });

    test("is refused as a whole, naming every field that is malformed or beyond the contract", async () => {
      const { admin } = await world().administeredTenant();
      const refused = await errorOf(
        admin.updateTenant({
          tenant: {
            policy: {
              keyRetention: seconds(59),
              resultRetention: seconds(500 * 24 * HOUR_S),
              defaultLease: { seconds: 0n, nanos: -1 },
              maxLease: seconds(25 * HOUR_S),
              onLeaseExpiry: 9 as Policy_OnLeaseExpiry,
              maxResultBytes: 0,
              providerLink: "javascript:{key}",
            },
          },
          updateMask: { paths: ["policy", "state", "name"] },
        }),
      );
      expect(refused).toMatchObject({ code: "InvalidArgument", reason: "INVALID_REQUEST" });
      expect([...new Set(refused.fields)].sort()).toEqual([
        "policy.default_lease",
        "policy.key_retention",
        "policy.max_lease",
        "policy.max_result_bytes",
        "policy.on_lease_expiry",
        "policy.provider_link",
        "policy.result_retention",
        "update_mask",
      ]);
      expect((await admin.getTenant({})).tenant?.policy?.keyRetention).toBeUndefined();
    });

    test("refuses reclaim_within under HOLD, and beyond the key retention", async () => {
      const { admin } = await world().administeredTenant({ key_retention_s: HOUR_S });
      const namespace = (policy: MessageInitShape<typeof PolicySchema>) =>
        admin.updateNamespace({ namespace: { name: "charges", policy }, allowMissing: true });
      const reclaimWithin = seconds(60);
      const hold = { onLeaseExpiry: Policy_OnLeaseExpiry.HOLD };
      const longer = await errorOf(
        admin.updateTenant({ tenant: { policy: { reclaimWithin: seconds(HOUR_S + 1) } } }),
      );
      expect(longer).toMatchObject({ reason: "INVALID_REQUEST", fields: ["policy.reclaim_within"] });
      expect(longer.message).toContain("between 1 min and 1 h");
      const both = await errorOf(admin.updateTenant({ tenant: { policy: { ...hold, reclaimWithin } } }));
      expect([...new Set(both.fields)]).toEqual(["policy.on_lease_expiry", "policy.reclaim_within"]);
      await namespace({ reclaimWithin });
      expect(await errorOf(namespace(hold))).toMatchObject({ fields: ["policy.on_lease_expiry"] });
      const { tenant } = await admin.updateTenant({ tenant: { policy: hold } });
      expect(tenant?.effectivePolicy?.reclaimWithin).toBeUndefined();
      expect(await errorOf(namespace({ reclaimWithin }))).toMatchObject({
        fields: ["policy.reclaim_within"],
        message: expect.stringContaining("needs on_lease_expiry RECLAIM"),
      });
    });

    test("stays within the operator's bounds; a field beyond new bounds is kept until it is set", async () => {
      const { admin } = await world().administeredTenant({
        key_retention_s: 10 * HOUR_S,
        max_key_retention_s: HOUR_S,
        min_key_retention_s: 120,
      });
      for (const keyRetention of [seconds(2 * HOUR_S), seconds(119)]) {
        const refused = await errorOf(admin.updateTenant({ tenant: { policy: { keyRetention } } }));
        expect(refused).toMatchObject({ reason: "INVALID_REQUEST", fields: ["policy.key_retention"] });
        expect(refused.message).toContain("between 2 min and 1 h");
      }
      const other = await admin.updateTenant({ tenant: { policy: { maxResultBytes: 5 } } });
      expect(secondsOf(other.tenant?.policy?.keyRetention)).toBe(10 * HOUR_S);
      await admin.updateTenant({ tenant: { policy: { keyRetention: seconds(HOUR_S) } } });
    });

    test("is not changed with an etag that is old, another resource's or invented", async () => {
      const { admin } = await world().administeredTenant();
      const other = await world().administeredTenant();
      const old = (await admin.getTenant({})).tenant?.etag ?? "";
      const change = (etag: string) =>
        admin.updateTenant({ tenant: { etag, policy: { maxResultBytes: 7 } } });
      const { tenant } = await change(old);
      expect(tenant?.etag).not.toBe(old);
      const others = (await other.admin.getTenant({})).tenant?.etag ?? "";
      for (const etag of [old, others, "x"]) {
        expect(await errorOf(change(etag))).toMatchObject({ code: "Aborted", reason: "ETAG_MISMATCH" });
      }
    });

    test("is not changed by validate_only, which returns the result", async () => {
      const { admin } = await world().administeredTenant();
      const before = await admin.getTenant({});
      const asked = await admin.updateTenant({
        tenant: { policy: { keyRetention: seconds(600) } },
        validateOnly: true,
      });
      expect(secondsOf(asked.tenant?.effectivePolicy?.resultRetention)).toBe(600);
      expect(asked.effect).toMatchObject({ recordsExamined: 0n, truncated: false });
      expect(asked.job).toBeUndefined();
      expect(await admin.getTenant({})).toEqual(before);
    });
  });

  describe("of a namespace", () => {
    const charges = (keyRetentionS: number) => ({
      name: "charges",
      policy: { keyRetention: seconds(keyRetentionS) },
    });

    test("is declared only with allow_missing", async () => {
      const { admin } = await world().administeredTenant();
      const refused = await errorOf(admin.updateNamespace({ namespace: charges(600) }));
      expect(refused).toMatchObject({ code: "NotFound", reason: "NAMESPACE_NOT_FOUND" });
      expect(await errorOf(admin.getNamespace({ name: "charges" }))).toEqual(refused);
      await admin.updateNamespace({ namespace: charges(600), allowMissing: true });
      const { namespace } = await admin.getNamespace({ name: "charges" });
      expect(secondsOf(namespace?.policy?.keyRetention)).toBe(600);
    });

    test("inherits from the tenant the fields that it doesn't set", async () => {
      const { admin } = await world().administeredTenant({ max_result_bytes: 9 });
      const { namespace } = await admin.updateNamespace({ namespace: charges(600), allowMissing: true });
      expect(namespace?.effectivePolicy?.maxResultBytes).toBe(9);
      expect(secondsOf(namespace?.effectivePolicy?.failureRetention)).toBe(600);
    });

    test("is not changed with another etag, also if it is not declared yet", async () => {
      const { admin } = await world().administeredTenant();
      const change = (etag: string) =>
        admin.updateNamespace({ namespace: { ...charges(600), etag }, allowMissing: true });
      expect(await errorOf(change("x"))).toMatchObject({ code: "Aborted", reason: "ETAG_MISMATCH" });
      const first = (await change("")).namespace?.etag ?? "";
      await change(first);
      expect((await errorOf(change(first))).reason).toBe("ETAG_MISMATCH");
    });

    test("is listed by name, page by page; namespaces declared in between don't shift the pages", async () => {
      const { admin } = await world().administeredTenant();
      const declare = (name: string) => admin.updateNamespace({ namespace: { name }, allowMissing: true });
      for (const name of ["b", "d", "f", "h"]) await declare(name);
      const listed = await readPages("namespaces", async (pageToken) => {
        const page = await admin.listNamespaces({ pageSize: 2, pageToken });
        expect(page.namespaces.length).toBeLessThanOrEqual(2);
        await declare("a");
        await declare("e");
        return page;
      });
      expect(listed.map(({ name }) => name)).toEqual(["b", "d", "e", "f", "h"]);
    });

    test("is found by the beginning of its name, with the number of all that match", async () => {
      const { admin, tenant } = await world().administeredTenant();
      await world().database.query(
        `insert into namespaces (tenant_id, name)
         select $1, unnest(array['pay', 'pay-', 'pay.eu', 'paz', 'pb', 'p'] || array(
                  select 'payout-' || lpad(i::text, 4, '0') from generate_series(1, 1200) i))`,
        [tenant.id],
      );
      const found = async (namePrefix: string, pageSize = 1000) => {
        const { namespaces, totalSize } = await admin.listNamespaces({ namePrefix, pageSize });
        return { names: namespaces.map(({ name }) => name), totalSize };
      };
      expect(await found("payout-12")).toEqual({ names: ["payout-1200"], totalSize: 1 });
      expect(await found("pay.")).toEqual({ names: ["pay.eu"], totalSize: 1 });
      expect(await found("pay", 3)).toEqual({ names: ["pay", "pay-", "pay.eu"], totalSize: 1203 });
      expect(await found("q")).toEqual({ names: [], totalSize: 0 });
      expect((await found("", 1)).totalSize).toBe(1206);
      const { nextPageToken: pageToken } = await admin.listNamespaces({ namePrefix: "pay", pageSize: 1 });
      const next = await admin.listNamespaces({ namePrefix: "pay", pageSize: 2, pageToken });
      expect(next.namespaces.map(({ name }) => name)).toEqual(["pay-", "pay.eu"]);
      expect(await errorOf(admin.listNamespaces({ namePrefix: "pa", pageToken }))).toMatchObject({
        fields: ["page_token"],
      });
      expect(await errorOf(admin.listNamespaces({ namePrefix: "Pay", pageSize: -1 }))).toMatchObject({
        reason: "INVALID_REQUEST",
        fields: ["name_prefix", "page_size"],
      });
    });

    test("is deleted, and then follows the tenant's; not while the namespace has records", async () => {
      const { admin, caller } = await world().administeredTenant();
      await admin.updateNamespace({ namespace: charges(600), allowMissing: true });
      await admin.deleteNamespace({ name: "charges" });
      expect((await errorOf(admin.deleteNamespace({ name: "charges" }))).reason).toBe("NAMESPACE_NOT_FOUND");

      await admin.updateNamespace({ namespace: charges(600), allowMissing: true });
      await caller.claim({ namespace: "charges", key: "order-1" });
      const refused = await errorOf(admin.deleteNamespace({ name: "charges" }));
      expect(refused).toMatchObject({ code: "FailedPrecondition", reason: "NAMESPACE_NOT_EMPTY" });
      expect((await errorOf(admin.deleteNamespace({ name: "charges", etag: "x", force: true }))).reason).toBe(
        "ETAG_MISMATCH",
      );
    });

    test("is deleted without the tenant's lock while its rows are read, of which many may be dead", async () => {
      const { admin, tenant } = await world().administeredTenant();
      const { database } = world();
      await admin.updateNamespace({ namespace: charges(600), allowMissing: true });
      const locking = await openConnection(database);
      await locking.query("begin; lock table records in access exclusive mode");
      const deleted = admin.deleteNamespace({ name: "charges" });
      await untilBlocked(database);
      await database.query("select from tenants where id = $1 for update nowait", [tenant.id]);
      await locking.query("rollback");
      await deleted;
    });

    test.each(["", "Charges", "-a", "a".repeat(64), "a b"])("is refused for the name %j", async (name) => {
      const { admin } = await world().administeredTenant();
      const calls = [
        () => admin.getNamespace({ name }),
        () => admin.deleteNamespace({ name }),
        () => admin.updateNamespace({ namespace: { name }, allowMissing: true }),
      ];
      for (const call of calls) expect((await errorOf(call())).reason).toBe("INVALID_REQUEST");
    });
  });

  test("changes are audit events with the values before and after", async () => {
    const { admin, tenant, adminKey } = await world().administeredTenant({ key_retention_s: 600 });
    await admin.updateTenant({ tenant: { policy: { keyRetention: seconds(700) } } });
    await admin.updateNamespace({ namespace: { name: "charges" }, allowMissing: true });
    await admin.deleteNamespace({ name: "charges" });
    const by = { actor: partsOf(adminKey).id, outcome: "DONE" };
    const updated = { before: { keyRetentionS: 600 }, after: { keyRetentionS: 700 } };
    const charges = { ...by, target: "namespace charges" };
    expect(await eventsOf(world().database, tenant)).toEqual(
      [
        { action: "UpdateTenant", ...by, target: `tenant ${tenant.name}`, ...updated },
        { action: "UpdateNamespace", ...charges, before: null, after: {} },
        { action: "DeleteNamespace", ...charges, before: {}, after: null },
      ].map((event) => expect.objectContaining(event)),
    );
  });
});
