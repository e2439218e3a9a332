import { createInterface } from "node:readline";
import { jsonLine } from "../lines.ts";
import { perform } from "./perform.ts";

// The TypeScript client's adapter: reads a case as a line of JSON, and writes its outcome as a line of JSON.
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(jsonLine(await perform(JSON.parse(line))));
}
