import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { AuditEvent_Outcome, AuditEventSchema } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { expect, it } from "vitest";
import { exportText } from "./export-format.ts";

const EVENT = create(AuditEventSchema, {
  id: 7n,
  at: timestampFromDate(new Date("2026-11-23T18:06:17.250Z")),
  tenant: "acme",
  actor: "7k2m9q4x1c8v5b3n",
  actorLabel: "on call",
  action: "SuspendTenant",
  target: "tenant acme",
  outcome: AuditEvent_Outcome.DONE,
  reason: '=cmd|"/c calc"!A1, late\nagain',
  before: { state: "ACTIVE" },
  after: { state: "SUSPENDED" },
  requestId: "request-1",
  calls: 1,
});

it("an event is one line of CSV, with the headings before it", () => {
  expect(exportText("csv", [EVENT])).toBe(
    [
      "id,at,tenant,actor,actor_label,action,target,outcome,denial,calls,reason,before,after,request_id",
      `7,2026-11-23T18:06:17.250Z,acme,7k2m9q4x1c8v5b3n,on call,SuspendTenant,tenant acme,done,,1,"'=cmd|""/c calc""!A1, late\nagain","{""state"":""ACTIVE""}","{""state"":""SUSPENDED""}",request-1`,
      "",
    ].join("\r\n"),
  );
});

it("an event is one line of JSON, as the API has it", () => {
  const text = exportText("jsonl", [EVENT, EVENT]);
  expect(text.split("\n")).toHaveLength(3);
  expect(JSON.parse(text.split("\n")[0] ?? "")).toMatchObject({
    id: "7",
    outcome: "OUTCOME_DONE",
    reason: EVENT.reason,
    before: { state: "ACTIVE" },
  });
});
