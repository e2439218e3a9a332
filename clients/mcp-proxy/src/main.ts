#!/usr/bin/env node
import { runProgram } from "./program.ts";

process.exitCode = await runProgram({
  args: process.argv.slice(2),
  env: process.env,
  write: (text) => process.stdout.write(text),
  warn: (text) => process.stderr.write(text),
});
