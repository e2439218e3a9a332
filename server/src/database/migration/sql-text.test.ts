import { expect, test } from "vitest";
import { splitStatements, withoutComments, withoutValues } from "./sql-text.ts";

test("SQL is split at the semicolons that end statements, and at no other", () => {
  const statements = [
    `select ';', "a;b", e'\\';' -- ;\n`,
    "do $$ begin perform 1; end $$",
    "do $body$ begin execute $$ select 1; $$; end $body$",
    "select 1 /* ; */",
  ];
  expect(splitStatements(`-- Up; Migration\n;${statements.join(";")}; -- end;\n`)).toEqual(
    statements.map((statement) => statement.trim()),
  );
});

test("a statement without comments keeps its texts", () => {
  expect(withoutComments("-- why\nselect '-- text' /* because */,\n  1")).toBe("select '-- text' , 1");
});

test("a statement without values shows no text, number or comment, and no control character", () => {
  const statement =
    "select \"order 1\", t1.x from t1 where k = 'a''b' and n > 12.5e3 and e = E'a\\'secret' and d = $x$ secret $x$ -- secret\n and p = $1\u001b[31m";
  expect(withoutValues(statement)).toBe(
    'select "order 1", t1.x from t1 where k = ? and n > ? and e = ? and d = ? and p = $1 [?',
  );
});

test("a text that was cut off shows nothing", () => {
  expect(withoutValues("update t set secret = 'abc")).toBe("update t set secret = ?");
  expect(withoutValues("update t set secret = $$abc")).toBe("update t set secret = ?");
  expect(withoutValues("select 1 /* abc")).toBe("select ?");
});
