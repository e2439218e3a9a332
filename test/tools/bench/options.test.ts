import { expect, test } from "vitest";
import { FIGURES } from "./finding.ts";
import { HELP, readOptions } from "./options.ts";

test("without options everything is measured", () => {
  const options = readOptions([]);
  expect([...options.only]).toEqual([...FIGURES]);
  expect(options).toMatchObject({ quick: false, rows: 1_000_000, out: "bench.json" });
  expect(options.serverEnv).toEqual({});
});

test("figures and rows are read", () => {
  const options = readOptions(["--only", "P1,p3", "--rows", "10M"]);
  expect([...options.only]).toEqual(["P1", "P3"]);
  expect(options).toMatchObject({ rows: 10_000_000 });
});

test("configuration of the servers is read", () => {
  const { serverEnv } = readOptions(["--server-env", "ONCEWARD_CONSOLE=false", "--server-env", "A=b=c"]);
  expect(serverEnv).toEqual({ ONCEWARD_CONSOLE: "false", A: "b=c" });
});

test.each([
  ["--only", "P99"],
  ["--rows", "many"],
  ["--server-env", "ONCEWARD_CONSOLE"],
])("%s %s is refused", (option, value) => {
  expect(() => readOptions([option, value])).toThrow(option);
});

test("--help names every option, and asks for no measurement", () => {
  expect(readOptions(["--help"]).help).toBe(true);
  const known = Object.keys(readOptions([])).map((name) => ({ serverEnv: "server-env" })[name] ?? name);
  for (const name of known.filter((each) => each !== "help")) expect(HELP).toContain(`--${name} `);
});
