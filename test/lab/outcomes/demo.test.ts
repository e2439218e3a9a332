import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

test("npm run demo settles every operation whose worker was killed, and charges none twice", async () => {
  const args = [
    "run",
    "--silent",
    "demo",
    "--",
    "--operations",
    "200",
    "--kill-every-ms",
    "100",
    "--lag-ms",
    "100",
  ];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: ROOT, env: CHILD_ENVIRONMENT });
  expect(stdout).toMatch(/^settled automatically: ([1-9]\d*) of \1, charged twice: 0\n$/m);
});
