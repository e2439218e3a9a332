import pg from "pg";
import { expect, test } from "vitest";
import { RESEND_WITHIN_MS } from "../domain/statement-times.ts";
import { classify, isUnreachable, requireTimeToResend, TOOK_TOO_LONG } from "./statement-errors.ts";

function answerOf(code: string, message: string): Error {
  return classify(Object.assign(new pg.DatabaseError(message, 0, "error"), { code }));
}

test.each([
  "failure on connection marked as essential: 127.0.0.1:5432",
  "could not commit transaction for shard 102013 on at least one active node",
])("a node of Citus that is lost is unavailable, and no defect: %s", (message) => {
  expect(answerOf("XX000", message)).toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
});

test("a round trip that took too long is unavailable, and Postgres is not unreachable", () => {
  const message = `invalid input syntax for type integer: "${TOOK_TOO_LONG}"`;
  const error = Object.assign(new pg.DatabaseError(message, 0, "error"), { code: "22P02" });
  expect(classify(error)).toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  expect(isUnreachable(error)).toBe(false);
});

test("another internal error of Postgres is a defect of its statement", () => {
  const error = answerOf("XX000", "cache lookup failed for type 0");
  expect(error).toMatchObject({ name: "StatementFailed", sqlState: "XX000" });
});

/** https://www.postgresql.org/docs/current/errcodes-appendix.html: the states with which Postgres ends or refuses a connection. */
const CONNECTION_STATES = [
  ...["08000", "08001", "08003", "08004", "08006", "08007", "08P01"],
  ...["25006", "25P03", "25P04"],
  ...["28000", "28P01", "3D000", "55000"],
  ...["53000", "53100", "53200", "53300", "53400"],
  ...["57000", "57014", "57P01", "57P02", "57P03", "57P04", "57P05"],
  ...["58000", "58030", "58P01", "58P02"],
];

test.each(CONNECTION_STATES)("a connection that Postgres ends or refuses with %s is unavailable", (code) => {
  expect(answerOf(code, "ended")).toMatchObject({ reason: "DATABASE_UNAVAILABLE", retryAfterMs: 500 });
});

test.each(["57014", "57P05", "25P03", "25P04"])(
  "Postgres that ends what is too slow with %s is not unreachable",
  (code) => {
    expect(isUnreachable(Object.assign(new pg.DatabaseError("ended", 0, "error"), { code }))).toBe(false);
  },
);

test("a refused statement is sent again within two seconds, and not after that", () => {
  const cause = new Error("moved");
  requireTimeToResend(performance.now() - RESEND_WITHIN_MS / 2, cause);
  expect(() => requireTimeToResend(performance.now() - RESEND_WITHIN_MS - 1, cause)).toThrow(
    expect.objectContaining({ reason: "DATABASE_UNAVAILABLE", cause }),
  );
});
