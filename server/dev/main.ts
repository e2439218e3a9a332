import { runCommand } from "../src/core/commands/process.ts";
import { dev } from "./dev.ts";

await runCommand(dev, process.argv.slice(2));
