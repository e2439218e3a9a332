import { expect, test } from "vitest";
import type { Failure, Operation } from "../history/operation.ts";
import { admin, claim, granted, LOST, refused, scenario } from "../history/scenario.ts";
import { checkErrors, countErrors } from "./errors.ts";

const message = "as it says";

function failed(by: Failure["by"], code: string, reason = "NO_ANSWER"): Operation {
  return { ...claim(0, LOST), answer: { kind: "unknown", reason, failure: { by, code, message } } };
}

const problems = (...operations: readonly Operation[]) =>
  checkErrors(scenario(operations)).map((violation) => violation.message);

test("UNAVAILABLE and DEADLINE_EXCEEDED are allowed, from the service and from the caller's side", () => {
  const unavailable = failed("service", "Unavailable", "DATABASE_UNAVAILABLE");
  const late = failed("caller", "DeadlineExceeded");
  expect(problems(claim(0, 10, granted(1)), claim(0, LOST), unavailable, late)).toEqual([]);
});

test("errors of a broken connection are allowed with any code", () => {
  expect(problems(failed("connection", "Aborted"), failed("connection", "Internal"))).toEqual([]);
});

test("another error of the service is a violation, with or without a reason", () => {
  expect(
    problems(
      failed("service", "Internal", "INTERNAL"),
      failed("service", "Unknown"),
      failed("service", "ResourceExhausted"),
      failed("service", "Canceled", "CANCELLED"),
    ),
  ).toEqual([
    "#1: the service failed with Internal: as it says",
    "#2: the service failed with Unknown: as it says",
    "#3: the service failed with ResourceExhausted: as it says",
    "#4: the service failed with Canceled: as it says",
  ]);
});

test("UNIMPLEMENTED is allowed for an administrator's call, and a violation for a caller's", () => {
  const unknown = failed("service", "Unimplemented");
  const resolve: Operation = { ...admin(0, LOST, { kind: "forget" }), answer: unknown.answer };
  expect(problems(resolve)).toEqual([]);
  expect(problems(unknown)).toEqual(["#1: the service failed with Unimplemented: as it says"]);
});

test("an answer that the caller can't parse is a violation", () => {
  expect(problems(failed("caller", "Internal"))).toEqual([
    "#1: the caller could not parse an answer: Internal: as it says",
  ]);
});

test("a refusal that the call does not deserve is a violation", () => {
  const asked = (reason: string) => claim(0, 10, refused(reason));
  expect(problems(asked("FINGERPRINT_MISMATCH"), asked("CREDENTIAL_INVALID"))).toEqual([
    "#2: refused with CREDENTIAL_INVALID, which the call does not deserve",
  ]);
});

test("a tenant that moves may be refused meanwhile, and no other tenant", () => {
  const refusals = ["TENANT_MOVING", "CREDENTIAL_INVALID"].map((reason) => claim(100, 110, refused(reason)));
  const history = scenario([
    ...refusals,
    claim(100, 110, refused("ROLE_DENIED")),
    claim(300, 310, granted(1)),
  ]);
  const reasons = (tenant: string, toMs: number) =>
    checkErrors({ ...history, tenantMoves: [{ tenant, fromMs: 50, toMs }] }).map(
      ({ message }) => /[A-Z]+_[A-Z]+/.exec(message)?.[0],
    );
  expect(reasons("acme", 200)).toEqual(["ROLE_DENIED"]);
  const all = ["TENANT_MOVING", "CREDENTIAL_INVALID", "ROLE_DENIED"];
  expect([reasons("acme", 99), reasons("globex", 200)]).toEqual([all, all]);
});

test("errors are counted by origin and by code and reason, or message", () => {
  const unavailable = failed("service", "Unavailable", "DATABASE_UNAVAILABLE");
  expect(countErrors([unavailable, unavailable, failed("connection", "Aborted"), claim(0, LOST)])).toEqual({
    "service: Unavailable DATABASE_UNAVAILABLE": 2,
    "connection: as it says": 1,
  });
});
