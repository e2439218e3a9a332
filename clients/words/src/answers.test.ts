import { create } from "@bufbuild/protobuf";
import { RecordSchema } from "@onceward/client/proto";
import { expect, it } from "vitest";
import { matchAnswers, readAnswers, reconciliationFile } from "./answers.ts";

const record = (namespace: string, key: string) => create(RecordSchema, { namespace, key });
const ODD_KEYS = ['po "7", é', "=1+1", "a\r\nb", "'x", " spaced "];

it("an exported and answered file names the same records, with any characters in keys", () => {
  const records = ODD_KEYS.map((key) => record("payouts", key));
  const file = reconciliationFile(records, new Map([["payouts", "https://pay.example/{key}"]]));
  const [head = "", ...lines] = file.split(/\r\n(?=.*,,,payouts|$)/);
  expect(head).toBe("key,happened?,result,namespace,owner,checkpoint,ambiguous_since,provider");
  expect(lines[0]).toBe('"po ""7"", é",,,payouts,,,,https://pay.example/po%20%227%22%2C%20%C3%A9');
  const open = ODD_KEYS.map((key) => ({ namespace: "payouts", key }));
  expect(readAnswers(file)).toEqual({ answers: [], open, problems: [] });

  const { answers, problems } = readAnswers(file.replaceAll(",,,payouts", ',Yes,"{""id"": 1}",payouts'));
  expect(problems).toEqual([]);
  expect(answers.map(({ key }) => key)).toEqual(ODD_KEYS);
  const { answered, settled } = matchAnswers(answers, records.slice(1));
  expect(answered.map(({ record: { key }, result }) => [key, result])).toEqual(
    ODD_KEYS.slice(1).map((key) => [key, '{"id": 1}']),
  );
  expect(settled.map(({ key }) => key)).toEqual(ODD_KEYS.slice(0, 1));
});

it("a spreadsheet's file is read: its separator, mark, line ends, and only two columns", () => {
  const answers = [
    { line: 2, namespace: "", key: "po-1", happened: true, result: "" },
    { line: 4, namespace: "", key: "po;2", happened: false, result: "" },
  ];
  expect(readAnswers('\uFEFFKey;Happened?\r\npo-1;TRUE\r\n;\r\n"po;2";no')).toEqual({
    ...{ answers, open: [], problems: [] },
  });
});

it("an unreadable value is named with its line, and a key of two namespaces is not guessed", () => {
  const text = 'key,happened?\npo-1,yes\n,no\npo-2,maybe\npo-1,no\n"po-3"x,no\n"po-4,yes\n';
  expect(readAnswers(text).problems).toEqual([
    'Line 3, column "key": empty.',
    'Line 4, column "happened?": "maybe" is not yes or no.',
    'Line 5, column "key": the key of line 2 again.',
  ]);
  expect(readAnswers(text).open).toHaveLength(2);
  expect(readAnswers("id,answer\npo-1,yes").problems).toEqual([
    'Line 1 has to name the columns "key" and "happened?".',
  ]);
  const { problems } = readAnswers("key,happened,result\npo-1,yes,{\npo-2,no,1\npo-3,yes,1\n");
  expect(problems.map((each) => each.split(":")[0])).toEqual(
    [2, 3].map((line) => `Line ${line}, column "result"`),
  );
  const { answers } = readAnswers("key,happened\npo-1,yes");
  const { unclear } = matchAnswers(answers, [record("payouts", "po-1"), record("refunds", "po-1")]);
  expect(unclear).toHaveLength(1);
});

it("a file has a bounded number of keys", () => {
  const rows = Array.from({ length: 10_001 }, (_, index) => `po-${index},yes`);
  expect(readAnswers(["key,happened?", ...rows].join("\n")).problems[0]).toMatch(/^At most 10000 keys/);
});
