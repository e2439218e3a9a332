import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const MODEL = fileURLToPath(new URL("./model/main.ts", import.meta.url));
const USAGE = "npm run lab -- model [OPTIONS]";

test.each([
  { args: ["--traces", "many", "--help"], status: 0, stdout: USAGE, stderr: "" },
  { args: ["--trace", "5"], status: 2, stdout: "", stderr: "Unknown option '--trace'" },
  { args: ["--trace\u001b[2J", "5"], status: 2, stdout: "", stderr: "Unknown option '--trace\ufffd[2J'" },
  { args: ["--traces", "many"], status: 2, stdout: "", stderr: "--traces takes a whole number from 1 to" },
  { args: [], status: 2, stdout: "", stderr: "choose --traces, --mutants, --replay or --depth" },
])(
  "a tool that is called with $args ends with $status, and shows its usage",
  ({ args, status, stdout, stderr }) => {
    const command = ["--conditions=@onceward/source", MODEL, ...args];
    const ended = spawnSync(process.execPath, command, { encoding: "utf8" });
    expect(ended).toMatchObject({
      status,
      stdout: expect.stringContaining(stdout),
      stderr: expect.stringContaining(stderr),
    });
    expect(ended.stdout + ended.stderr).toContain(USAGE);
  },
);
