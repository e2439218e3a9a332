import { toBinary } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ListAuditEventsResponseSchema } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import {
  ApiKey_Role,
  type AuditEvent,
  AuditEvent_Outcome,
} from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import { MAX_MESSAGE_BYTES } from "../../server/src/domain/limits.ts";
import { connectAdmin, describeAdministration, type TenantAdminClient } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { actionsOf } from "../support/database/audit.ts";
import type { TestDatabase } from "../support/database/database.ts";
import type { TestTenant } from "../support/servers/tenants.ts";

const CALLER = { role: ApiKey_Role.CALLER };

describeAdministration("ListAuditEvents", (world) => {
  function allOf(admin: TenantAdminClient, pageSize: number, firstToken = ""): Promise<AuditEvent[]> {
    return readPages("events", (pageToken) => admin.listAuditEvents({ pageSize, pageToken }), firstToken);
  }

  test("shows actor, action, target, reason, time and the request id of the log", async () => {
    const { admin, adminKey, caller, tenant } = await world().administeredTenant();
    await grant(caller);
    const headers = { "x-request-id": `request-${tenant.name}` };
    const request = { ...ORDER, reason: "found out", resolution: { case: "release", value: {} } } as const;
    await admin.resolveRecord(request, { headers });
    const { events } = await admin.listAuditEvents({});
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      tenant: tenant.name,
      actor: parseApiKey(adminKey)?.id,
      action: "ResolveRecord",
      outcome: AuditEvent_Outcome.DONE,
      denial: "",
      reason: "found out",
      before: { state: "inProgress" },
      after: { state: "released" },
      requestId: headers["x-request-id"],
    });
    const at = events[0]?.at;
    if (at === undefined) throw new Error("a moment is missing");
    expect(Math.abs(timestampDate(at).getTime() - Date.now())).toBeLessThan(60_000);
  });

  test("shows a tenant only its own events, including operators' changes of it", async () => {
    const operator = await world().operator();
    const { admin, tenant } = await world().administeredTenant();
    const theirs = await world().administeredTenant();
    await theirs.admin.createApiKey({ apiKey: CALLER });
    await admin.createApiKey({ apiKey: CALLER });
    await operator.updateTenantLimits({ name: tenant.name, quotas: { burst: 5 } });
    expect(actionsOf((await admin.listAuditEvents({})).events)).toEqual([
      "UpdateTenantLimits",
      "CreateApiKey",
    ]);
  });

  test("shows a tenant no events of an earlier tenant of its name; an operator sees them", async () => {
    const operator = await world().operator();
    const { admin, tenant } = await world().administeredTenant();
    await world().database.query(
      `insert into audit_events (tenant, tenant_id, actor, action, target, outcome, request_id)
       values ($1, -1, 'somebody', 'UpdateTenant', 'tenant', 'DONE', 'request')`,
      [tenant.name],
    );
    await admin.createApiKey({ apiKey: CALLER });
    expect(actionsOf((await admin.listAuditEvents({})).events)).toEqual(["CreateApiKey"]);
    const { events } = await operator.listAuditEvents({ tenant: tenant.name });
    expect(actionsOf(events)).toEqual(["CreateApiKey", "UpdateTenant"]);
  });

  test("shows an operator the events of all tenants, or of one", async () => {
    const operator = await world().operator();
    const one = await world().administeredTenant();
    const other = await world().administeredTenant();
    for (const { admin } of [one, other]) await admin.createApiKey({ apiKey: CALLER });
    const { events: all } = await operator.listAuditEvents({ pageSize: 2 });
    expect(all.map(({ tenant }) => tenant)).toEqual([other.tenant.name, one.tenant.name]);
    const { events } = await operator.listAuditEvents({ tenant: one.tenant.name });
    expect(events.map(({ tenant }) => tenant)).toEqual([one.tenant.name]);
  });

  test("lists events from the newest to the oldest, also if events are written between two pages", async () => {
    const { admin, tenant } = await world().administeredTenant();
    await writeEvents(world().database, tenant, 7);
    const first = await admin.listAuditEvents({ pageSize: 3 });
    expect(first.events.map(({ reason }) => reason)).toEqual(["7", "6", "5"]);
    await writeEvents(world().database, tenant, 2);
    const rest = await allOf(admin, 2, first.nextPageToken);
    expect(rest.map(({ reason }) => reason)).toEqual(["4", "3", "2", "1"]);
    expect(await allOf(admin, 1)).toEqual((await admin.listAuditEvents({ pageSize: 1000 })).events);
  });

  test("lists events of the same time once each", async () => {
    const { admin, tenant } = await world().administeredTenant();
    await writeEvents(world().database, tenant, 5, "now()");
    expect((await allOf(admin, 2)).map(({ reason }) => reason)).toEqual(["5", "4", "3", "2", "1"]);
  });

  test("filters by RPC, also if few events match", async () => {
    const { admin, tenant } = await world().administeredTenant();
    await admin.createApiKey({ apiKey: CALLER });
    await writeEvents(world().database, tenant, 6000);
    const { events, nextPageToken } = await admin.listAuditEvents({ action: "CreateApiKey" });
    expect(actionsOf(events)).toEqual(["CreateApiKey"]);
    expect(nextPageToken).toBe("");
    expect((await admin.listAuditEvents({ action: "Nothing" })).events).toEqual([]);
  });

  test("filters by actor, target and outcome", async () => {
    const { admin, tenant, adminKey, caller } = await world().administeredTenant();
    const own = parseApiKey(adminKey)?.id ?? "";
    await writeEvents(world().database, tenant, 3);
    await admin.updateNamespace({
      namespace: { name: "charges", policy: { keyRetention: { seconds: 7200n } } },
      allowMissing: true,
    });
    expect(await errorOf(connectAdmin(world().server, tenant.apiKey).createApiKey({}))).toMatchObject({
      reason: "ROLE_DENIED",
    });
    await caller.claim({ namespace: "charges", key: "1" });
    const of = async (filter: { actor?: string; target?: string; outcome?: AuditEvent_Outcome }) =>
      actionsOf((await admin.listAuditEvents(filter)).events);
    expect(await of({ actor: own })).toEqual(["UpdateNamespace"]);
    expect(await of({ target: "namespace charges" })).toEqual(["UpdateNamespace"]);
    expect(await of({ target: "namespace charge" })).toEqual([]);
    expect(await of({ outcome: AuditEvent_Outcome.DENIED })).toEqual(["CreateApiKey"]);
    expect(await of({ actor: own, outcome: AuditEvent_Outcome.DENIED })).toEqual([]);
    expect(await of({ actor: own, outcome: AuditEvent_Outcome.DONE })).toEqual(["UpdateNamespace"]);
    const unknown = 9 as AuditEvent_Outcome;
    expect(
      await errorOf(
        admin.listAuditEvents({ actor: "a".repeat(256), target: "t".repeat(1025), outcome: unknown }),
      ),
    ).toMatchObject({ reason: "INVALID_REQUEST", fields: ["actor", "target", "outcome"] });
  });

  test("names the actor by its label: a tenant's own keys to the tenant, all keys to an operator", async () => {
    const operator = await world().operator();
    const { admin, adminKey, tenant } = await world().administeredTenant();
    await world().database.query("update api_keys set label = 'first admin' where id = $1", [
      parseApiKey(adminKey)?.id,
    ]);
    await world().database.query("update api_keys set label = 'on call' where role = 'OPERATOR'");
    await admin.createApiKey({ apiKey: CALLER });
    await operator.updateTenantLimits({ name: tenant.name, quotas: { burst: 5 } });
    const labels = (events: readonly AuditEvent[]) => events.map(({ actorLabel }) => actorLabel);
    expect(labels((await admin.listAuditEvents({})).events)).toEqual(["", "first admin"]);
    const { events } = await operator.listAuditEvents({ tenant: tenant.name });
    expect(labels(events)).toEqual(["on call", "first admin"]);
  });

  test("leaves out the console's sessions if asked", async () => {
    const { admin, tenant } = await world().administeredTenant();
    await world().database.query(
      `insert into audit_events (tenant, tenant_id, actor, action, target, outcome, request_id)
       select $1, $2, 'somebody', unnest(array['SignIn', 'UpdateTenant', 'SignOut', 'SignOutEverywhere', 'SignIn']),
              'tenant', 'DONE', 'request'`,
      [tenant.name, tenant.id],
    );
    const page = { withoutSignIns: true, pageSize: 1 };
    const { events, nextPageToken } = await admin.listAuditEvents(page);
    expect([actionsOf(events), nextPageToken]).toEqual([["UpdateTenant"], ""]);
    expect((await admin.listAuditEvents({})).events).toHaveLength(5);
  });

  test("filters by time: from one instant, before another", async () => {
    const { admin, tenant } = await world().administeredTenant();
    await writeEvents(world().database, tenant, 3, "now() - i * interval '1 hour'");
    const ago = (hours: number): Timestamp => timestampFromMs(Date.now() - hours * 3_600_000);
    const reasonsOf = async (filter: { after?: Timestamp; before?: Timestamp }) =>
      (await admin.listAuditEvents(filter)).events.map(({ reason }) => reason);
    expect(await reasonsOf({ after: ago(2.5) })).toEqual(["1", "2"]);
    expect(await reasonsOf({ before: ago(1.5) })).toEqual(["2", "3"]);
    expect(await reasonsOf({ after: ago(2.5), before: ago(1.5) })).toEqual(["2"]);
    const [, second] = (await admin.listAuditEvents({})).events;
    if (second?.at === undefined) throw new Error("a moment is missing");
    expect(await reasonsOf({ after: second.at })).toEqual(["1", "2"]);
    expect(await reasonsOf({ before: second.at })).toEqual(["3"]);
  });

  test("fits a page into a message, however large the events are", async () => {
    const { admin, tenant } = await world().administeredTenant();
    await world().database.query(
      `insert into audit_events (tenant, tenant_id, actor, action, target, outcome, reason, request_id, after)
       select $1, $2, 'somebody', 'Act', 'target', 'DONE', i, 'request', jsonb_build_object('much', repeat('x', 9000))
         from generate_series(1, 600) i`,
      [tenant.name, tenant.id],
    );
    const all = await readPages("events", async (pageToken) => {
      const reply = await admin.listAuditEvents({ pageSize: 1000, pageToken });
      expect(toBinary(ListAuditEventsResponseSchema, reply).byteLength).toBeLessThan(MAX_MESSAGE_BYTES);
      return reply;
    });
    expect(all).toHaveLength(600);
  });

  test("accepts a page token only for the same request of the same tenant", async () => {
    const mine = await world().administeredTenant();
    const theirs = await world().administeredTenant();
    const operator = await world().operator();
    for (const { tenant } of [mine, theirs]) await writeEvents(world().database, tenant, 2);
    const { nextPageToken: pageToken } = await mine.admin.listAuditEvents({ pageSize: 1 });
    const others = [
      () => theirs.admin.listAuditEvents({ pageToken }),
      () => mine.admin.listAuditEvents({ pageToken, action: "Act" }),
      () => operator.listAuditEvents({ pageToken }),
      () => operator.listAuditEvents({ pageToken, tenant: mine.tenant.name }),
    ];
    for (const call of others) expect(await errorOf(call())).toMatchObject({ fields: ["page_token"] });
  });

  test("refuses malformed fields, all in one error", async () => {
    const { admin } = await world().administeredTenant();
    const operator = await world().operator();
    const wrong = { pageSize: -1, pageToken: "x", action: "\n" };
    expect(await errorOf(admin.listAuditEvents(wrong))).toMatchObject({
      fields: ["action", "page_size", "page_token"],
    });
    expect(await errorOf(operator.listAuditEvents({ ...wrong, tenant: "No" }))).toMatchObject({
      fields: ["tenant", "action", "page_size", "page_token"],
    });
  });

  test("events cannot be changed or removed, not even by the owner of their table", async () => {
    const { tenant } = await world().administeredTenant();
    const { database } = world();
    await writeEvents(database, tenant, 1);
    const [role] = await database.query<{ owns: boolean }>(
      "select tableowner = current_user as owns from pg_tables where tablename = 'audit_events'",
    );
    expect(role?.owns).toBe(true);
    for (const statement of [
      "update audit_events set reason = 'another'",
      "delete from audit_events",
      "truncate audit_events",
      "truncate audit_events cascade",
    ]) {
      await expect(database.query(statement)).rejects.toThrow("audit events are final");
    }
    const events = await database.query("select reason from audit_events where tenant_id = $1", [tenant.id]);
    expect(events).toEqual([{ reason: "1" }]);
  });
});

/** Writes events whose reasons count them. */
async function writeEvents(
  database: TestDatabase,
  { id, name }: TestTenant,
  count: number,
  at = "clock_timestamp()",
): Promise<void> {
  await database.query(
    `insert into audit_events (tenant, tenant_id, actor, action, target, outcome, reason, request_id, at)
     select $1, $2, 'somebody', 'Act', 'target', 'DONE', i, 'request', ${at} from generate_series(1, $3::int) i`,
    [name, id, count],
  );
}
