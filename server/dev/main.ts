import { runCommand } from "../src/commands/process.ts";
import { dev } from "./dev.ts";

let isOutputClosed = false;

/** `npm start | head -1` closes the pipe after the first line; a failed write to it would end the process. */
function serveWithoutOutput(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  if (isOutputClosed) return;
  isOutputClosed = true;
  process.stderr.write("Standard output was closed: the service continues without it. Ctrl-C stops it.\n");
}

for (const output of [process.stdout, process.stderr]) output.on("error", serveWithoutOutput);
await runCommand(dev, process.argv.slice(2));
