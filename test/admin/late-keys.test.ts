import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { Policy_LateKeys } from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { type AdministeredTenant, type AdminWorld, describeAdministration } from "../support/calls/admin.ts";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER, seconds } from "../support/calls/verbs.ts";
import { secondsBetween } from "../support/database/time.ts";

const HOUR_S = 3600;
const { RUN, REFUSE, REQUIRE_TIME } = Policy_LateKeys;
/** A number of a later version of the contract. */
const UNKNOWN = 99 as Policy_LateKeys;
const TOO_OLD = { reason: "KEY_TOO_OLD" };

interface AskedPolicy {
  readonly lateKeys?: Policy_LateKeys;
  readonly retentionS?: number;
}

async function setPolicy(
  { admin }: AdministeredTenant,
  { lateKeys, retentionS }: AskedPolicy,
  namespace?: string,
): Promise<void> {
  const policy = {
    ...(lateKeys !== undefined && { lateKeys }),
    ...(retentionS !== undefined && { keyRetention: seconds(retentionS) }),
  };
  if (namespace === undefined) await admin.updateTenant({ tenant: { policy } });
  else await admin.updateNamespace({ namespace: { name: namespace, policy }, allowMissing: true });
}

function claim(caller: IdempotencyClient, agoS: number, namespace = ORDER.namespace) {
  const keyCreatedAt = timestampFromMs(Date.now() - agoS * 1000);
  return caller.claim({ namespace, key: `created ${agoS} s ago`, keyCreatedAt });
}

/** Makes the changes of a tenant's policies older. */
async function ageChanges(
  { database }: AdminWorld,
  { tenant }: AdministeredTenant,
  agoS: number,
): Promise<void> {
  for (const table of ["tenants where id", "namespaces where tenant_id"]) {
    const [name = "", column = ""] = table.split(" where ");
    await database.query(
      `update ${name} set retention_lengthened_at = retention_lengthened_at - $2 * interval '1 second',
                          late_keys_refused_since = late_keys_refused_since - $2 * interval '1 second'
        where ${column} = $1`,
      [tenant.id, agoS],
    );
  }
  // Namespaces are read again when their version changes.
  await database.query("update tenants set namespaces_version = namespaces_version + 1 where id = $1", [
    tenant.id,
  ]);
}

describeAdministration("late_keys", (world: () => AdminWorld) => {
  test("is RUN until it is set, and a namespace inherits it", async () => {
    const tenant = await world().administeredTenant();
    const { tenant: unset } = await tenant.admin.getTenant({});
    expect([unset?.policy?.lateKeys, unset?.effectivePolicy?.lateKeys]).toEqual([0, RUN]);
    await setPolicy(tenant, { lateKeys: REFUSE });
    await setPolicy(tenant, { retentionS: HOUR_S }, "charges");
    await setPolicy(tenant, { lateKeys: REQUIRE_TIME }, "mails");
    const { namespaces } = await tenant.admin.listNamespaces({});
    expect(namespaces.map(({ effectivePolicy }) => effectivePolicy?.lateKeys)).toEqual([
      REFUSE,
      REQUIRE_TIME,
    ]);
  });

  test("is refused if it is unknown", async () => {
    const tenant = await world().administeredTenant();
    const refused = await errorOf(setPolicy(tenant, { lateKeys: UNKNOWN }));
    expect(refused).toMatchObject({ reason: "INVALID_REQUEST", fields: ["policy.late_keys"] });
  });

  test("is in the audit event of its change, and nothing else is", async () => {
    const tenant = await world().administeredTenant();
    await setPolicy(tenant, { lateKeys: REFUSE });
    const { events } = await tenant.admin.listAuditEvents({});
    expect(events[0]?.before).toEqual({});
    expect(events[0]?.after).toEqual({ lateKeys: "REFUSE" });
  });

  test("extends the retention of existing records if they are re-stamped", async () => {
    const tenant = await world().administeredTenant({ key_retention_s: HOUR_S });
    await grant(tenant.caller);
    const policy = { lateKeys: REFUSE };
    const { effect } = await tenant.admin.updateTenant({ tenant: { policy }, validateOnly: true });
    expect(effect).toMatchObject({ recordsChanged: 1n, recordsForgotten: 0n });
    const { record } = await tenant.caller.lookup(ORDER);
    expect(secondsBetween(record?.claimedAt, record?.expiresAt)).toBeCloseTo(HOUR_S, 5);
  });
});

describeAdministration("After a change of a policy, a key from before", (world: () => AdminWorld) => {
  test("is refused 10 min earlier, if late keys were granted until then", async () => {
    const tenant = await world().administeredTenant({ key_retention_s: HOUR_S });
    await setPolicy(tenant, { lateKeys: REFUSE });
    expect(await errorOf(claim(tenant.caller, HOUR_S - 590))).toMatchObject(TOO_OLD);
    await claim(tenant.caller, HOUR_S - 610);
  });

  test("is refused at the new limit, if it was created long after", async () => {
    const tenant = await world().administeredTenant({ key_retention_s: HOUR_S });
    await setPolicy(tenant, { lateKeys: REFUSE }, "charges");
    await ageChanges(world(), tenant, 2 * HOUR_S);
    // The replica reads the tenant again after a change of it.
    await setPolicy(tenant, {});
    await claim(tenant.caller, HOUR_S - 590);
    expect(await errorOf(claim(tenant.caller, HOUR_S + 1))).toMatchObject(TOO_OLD);
  });

  describe("that lengthened key_retention", () => {
    async function refusing(retentionS: number): Promise<AdministeredTenant> {
      return await world().administeredTenant({ late_keys: "REFUSE", key_retention_s: retentionS });
    }

    test("keeps the earlier limit, in namespaces that inherit the retention", async () => {
      const tenant = await refusing(HOUR_S);
      await setPolicy(tenant, { retentionS: 24 * HOUR_S }, "own");
      await ageChanges(world(), tenant, 5 * HOUR_S);
      await setPolicy(tenant, { retentionS: 24 * HOUR_S });
      expect(await errorOf(claim(tenant.caller, 2 * HOUR_S))).toMatchObject(TOO_OLD);
      expect(await errorOf(claim(tenant.caller, 2 * HOUR_S, "undeclared"))).toMatchObject(TOO_OLD);
      await claim(tenant.caller, 2 * HOUR_S, "own");
    });

    test("keeps it after later changes", async () => {
      const tenant = await refusing(HOUR_S);
      await setPolicy(tenant, { retentionS: 24 * HOUR_S });
      await setPolicy(tenant, { retentionS: 48 * HOUR_S }, "charges");
      await setPolicy(tenant, { lateKeys: REQUIRE_TIME }, "charges");
      expect(await errorOf(claim(tenant.caller, 2 * HOUR_S))).toMatchObject(TOO_OLD);
      await claim(tenant.caller, HOUR_S - 30);
    });

    test("does not if the change was only asked for", async () => {
      const tenant = await refusing(2 * HOUR_S);
      const policy = { keyRetention: seconds(24 * HOUR_S) };
      await tenant.admin.updateTenant({ tenant: { policy }, validateOnly: true });
      await claim(tenant.caller, HOUR_S);
      expect(await errorOf(claim(tenant.caller, 3 * HOUR_S))).toMatchObject(TOO_OLD);
    });
  });
});
