import pg from "pg";
import { expect, test } from "vitest";
import { classify, isUnreachableNode } from "./statement-errors.ts";

function answerOf(code: string, message: string): Error {
  return classify(Object.assign(new pg.DatabaseError(message, 0, "error"), { code }));
}

test.each([
  "failure on connection marked as essential: 127.0.0.1:5432",
  "could not commit transaction for shard 102013 on at least one active node",
])("a node of Citus that is lost is unavailable, and no defect: %s", (message) => {
  const error = answerOf("XX000", message);
  expect(error).toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  expect(isUnreachableNode(error)).toBe(true);
});

test("another internal error of Postgres is a defect of its statement", () => {
  const error = answerOf("XX000", "cache lookup failed for type 0");
  expect(error).toMatchObject({ name: "StatementFailed", sqlState: "XX000" });
  expect(isUnreachableNode(error)).toBe(false);
});
