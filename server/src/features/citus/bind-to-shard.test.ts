import { expect, test } from "vitest";
import { claimRecord, claimRecords, takeOverRecords } from "../../core/store/records/claim-statements.ts";
import { createBindToShard } from "./bind-to-shard.ts";

/** Binds statements with tokens of a sequence that begins with 1. */
function newBind() {
  const drawings: number[] = [];
  let last = 0n;
  const bind = createBindToShard({
    async run<Row>(_: unknown, [count]: readonly unknown[]): Promise<Row[]> {
      drawings.push(Number(count));
      return Array.from({ length: Number(count) }, () => ({ token: String(++last) }) as Row);
    },
  });
  return { bind, drawings };
}

test("statements that insert records share a drawing of tokens, and each gets its own", async () => {
  const { bind, drawings } = newBind();
  const first = await bind(claimRecords, 7, ["a"]);
  const second = await bind(claimRecord, 8, ["b"]);
  expect([first.parameters, second.parameters]).toEqual([
    ["a", 1n],
    ["b", 2n],
  ]);
  expect(drawings).toEqual([256]);
});

test("a take-over draws its token at once, because other statements may have raised the row's meanwhile", async () => {
  const { bind, drawings } = newBind();
  await bind(claimRecords, 7, []);
  expect((await bind(takeOverRecords, 7, ["a"])).parameters).toEqual(["a", 257n]);
  expect(drawings).toEqual([256, 1]);
});

test("a statement is named after its shard, so that each shard has its own plan", async () => {
  const { bind } = newBind();
  const { statement } = await bind(claimRecords, 7, []);
  expect(statement).toMatchObject({ name: "claim_records", preparedName: "claim_records_7", shard: 7 });
  expect(statement.text).toContain("insert into records_7 as r");
  expect(statement.text).not.toMatch(/\brecords\b|nextval/);
});
