import { readFile } from "node:fs/promises";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { findTenantsThatHold } from "../../server/src/admin/records/ambiguous-counter.ts";
import { createWorld } from "../support/calls/admin.ts";
import { ageRecords, endLeases } from "../support/calls/records.ts";
import { grant, lookUp, ORDER } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();
const MARK_LOSS = await readFile(new URL("../../deploy/postgres/mark-loss.sql", import.meta.url), "utf8");
const LOOK = { ...ORDER, acceptAmbiguous: true };

/** A tenant with RECLAIM. */
const newTenant = () => createWorld(database, server).administeredTenant();

test("a released record is held for a lease and a retention from now, also for its claim's id", async () => {
  const { caller, tenant } = await newTenant();
  const { fencingToken } = await grant(caller, { claimId: "durable" });
  await caller.release({ ...ORDER, fencingToken });
  await ageRecords(database, tenant, 3600);
  const markedAtMs = Date.now();
  await database.query(MARK_LOSS);
  expect((await caller.claim({ ...ORDER, claimId: "durable" })).outcome.case).toBe("inProgress");
  const { leaseExpiresAt, expiresAt } = await lookUp(caller);
  if (leaseExpiresAt === undefined || expiresAt === undefined) throw new Error("the record has no times");
  expect(timestampMs(leaseExpiresAt)).toBeGreaterThan(markedAtMs + 29_000);
  expect(timestampMs(expiresAt)).toBeGreaterThan(markedAtMs + 71 * 3600_000);
  await endLeases(database, tenant);
  expect((await caller.claim({ ...ORDER, claimId: "durable" })).outcome.case).toBe("ambiguous");
});

test.each(["before the loss", "after it"])("a record stays held that is given back %s", async (when) => {
  const { caller, tenant } = await newTenant();
  await grant(caller);
  await endLeases(database, tenant);
  const look = await grant(caller, LOOK);
  const back = () => caller.release({ ...ORDER, fencingToken: look.fencingToken, giveBack: true });
  if (when === "before the loss") await back();
  await database.query(MARK_LOSS);
  if (when === "after it") await back();
  await endLeases(database, tenant);
  const later = await grant(caller, LOOK);
  await caller.release({ ...ORDER, fencingToken: later.fencingToken, giveBack: true });
  expect((await caller.claim(ORDER)).outcome.case).toBe("ambiguous");
  expect(await findTenantsThatHold(openStorePool(database), [tenant.id])).toEqual([tenant.id]);
});
