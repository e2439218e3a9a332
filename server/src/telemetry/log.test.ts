import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { createLog } from "./log.ts";

/** Returns what the log writes for an error of the database. */
function logged(code: string): string {
  let text = "";
  const destination = new Writable({
    write(chunk, _, done) {
      text += chunk;
      done();
    },
  });
  const error = Object.assign(new Error(`the value "4242" is not allowed`), { code, detail: "Key (4242)" });
  createLog("info", destination).error({ err: error }, "a statement failed");
  return text;
}

test.each(["22P02", "22003", "P0001", "P0004"])(
  "a message of SQLSTATE %s, which may quote a value, is not written",
  (code) => {
    const text = logged(code);
    expect(text).toContain(code);
    expect(text).not.toContain("4242");
  },
);

test("a message of another SQLSTATE is written, without its detail", () => {
  const text = logged("57014");
  expect(text).toContain("is not allowed");
  expect(text).not.toContain("Key (4242)");
});
