import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { ListRecordsRequest_Order } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { matches } from "../../server/src/admin/jobs/record-job.ts";
import { findTenantsThatHold } from "../../server/src/admin/records/ambiguous-counter.ts";
import { describeAdministration } from "../support/calls/admin.ts";
import { recordIn } from "../support/calls/domain.ts";
import { ageRecords } from "../support/calls/records.ts";
import { grant, ORDER, seconds } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";

const { UNSPECIFIED, LEASE_EXPIRY } = ListRecordsRequest_Order;
const STATE = { namespace: ORDER.namespace, state: Record_State.AMBIGUOUS };

describeAdministration("With reclaim_within", (world) => {
  /** All leases have ended. Only "held" has a first claim older than reclaim_within whose effect may have begun. */
  async function withRecords() {
    const one = await world().administeredTenant({ reclaim_within_s: 600 });
    for (const [key, ageS] of [
      ["held", 700],
      ["lapsed", 500],
      ["pending", 700],
    ] as const) {
      await grant(one.caller, { key, marksBegin: key === "pending" });
      await ageRecords(world().database, one.tenant, ageS, key);
    }
    return one;
  }

  test("lists, counts and previews have as ambiguous what is held, and no other expired lease", async () => {
    const { admin, tenant } = await withRecords();
    for (const order of [UNSPECIFIED, LEASE_EXPIRY]) {
      const { records } = await admin.listRecords({ ...STATE, order });
      expect(records).toMatchObject([{ key: "held", state: Record_State.AMBIGUOUS }]);
    }
    expect(await admin.countAmbiguousRecords({})).toMatchObject({ ambiguous: 1n });
    expect(await admin.countRecords({ namespace: ORDER.namespace })).toMatchObject({
      lapsed: 2n,
      ambiguous: 1n,
    });
    const { effect } = await admin.updateTenant({
      tenant: { policy: { keyRetention: seconds(60) } },
      updateMask: { paths: ["policy.key_retention"] },
      validateOnly: true,
    });
    expect(effect).toMatchObject({ recordsForgotten: 3n, ambiguousForgotten: 1n });
    expect(await findTenantsThatHold(openStorePool(world().database), [tenant.id])).toEqual([tenant.id]);
  });

  test("a record is ambiguous since that time, and not since the end of its lease", async () => {
    const { admin } = await withRecords();
    const { records } = await admin.listRecords(STATE);
    // Its lease ended 670 s ago, and its time 100 s ago.
    const agoS = (ageS: number) =>
      timestampFromMs(timestampMs(records[0]?.leaseExpiresAt as never) + (670 - ageS) * 1000);
    for (const [leaseExpiredBefore, found] of [
      [agoS(200), 0],
      [agoS(50), 1],
    ] as const) {
      for (const order of [UNSPECIFIED, LEASE_EXPIRY]) {
        const listed = await admin.listRecords({ ...STATE, order, leaseExpiredBefore });
        expect(listed.records).toHaveLength(found);
      }
      const { ambiguous } = await admin.countAmbiguousRecords({ leaseExpiredBefore });
      expect(ambiguous).toBe(BigInt(found));
    }
  });

  test("a job resolves no record that becomes ambiguous after it was created", () => {
    const record = recordIn("ambiguous", {
      phase: { kind: "ambiguous", sinceMs: 2000 },
      leaseExpiresAtMs: 1000,
    });
    const resolves = (leaseExpiredBeforeMs: number) =>
      matches(record, { leaseExpiredBeforeMs, owner: "", checkpoint: "" });
    expect([resolves(2000), resolves(2001)]).toEqual([false, true]);
  });
});
