import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createOnceward } from "@onceward/client";
import { expect, test } from "vitest";
import { findNodes, linkPackages, typeErrors, usePackedClient } from "../support/packages/packed-client.ts";
import { createWorkplaceWithCluster } from "../support/processes/command.ts";
import { pressCtrlC, startDev } from "../support/processes/dev.ts";
import { codeBlocks, firstBlock } from "../support/processes/readme.ts";

const run = promisify(execFile);
const README = "clients/typescript/README.md";
const HTTP_GUIDE = "clients/typescript/guides/http.md";
const TIMEOUT_MS = 120_000;

const packed = usePackedClient();

const COUNTED_CHARGE = `
interface Body { readonly amount: number }
let charges = 0;
async function charge_({ amount }: Body, options: { idempotencyKey: string }) {
  return { amount, charge: ++charges, key: options.idempotencyKey };
}
`;
/** What the one call of each page speaks of. */
const BEFORE_THE_CALL = {
  [README]: `${COUNTED_CHARGE}
const orderId: string = "order-1";
const body: Body = { amount: 4200 };
const stripe = { charges: { create: charge_ } };
`,
  "README.md": `${COUNTED_CHARGE}
const order: Body & { readonly id: string } = { id: "order-2", amount: 4200 };
const provider = { charge: charge_ };
`,
};
const AFTER_THE_CALL = `
await onceward.close();
console.log(JSON.stringify({ charge, charges }));
`;

test("the README's first example replays its result on every installed Node, without a warning", async () => {
  const { project } = packed();
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace);
  const lines = await firstBlock(README, "js");
  expect(lines.trim().split("\n")).toHaveLength(5);
  const cwd = join(project, "first");
  await mkdir(cwd);
  // As npm install writes it in an empty folder.
  await writeFile(join(cwd, "package.json"), JSON.stringify({ dependencies: {} }));
  for (const [version, node] of await findNodes()) {
    const script = lines
      .replace("http://localhost:50051", dev.grpcUrl)
      .replace("order-1", `order-${version}`);
    await writeFile(join(cwd, "first.mjs"), script);
    const env = { ONCEWARD_API_KEY: dev.callerKey };
    const { stdout, stderr } = await run(node, ["first.mjs"], { cwd, env, timeout: TIMEOUT_MS });
    expect(stderr).toBe("");
    const printed = stdout.match(/value: 'charged'|replayed: \w+/g);
    expect([version, printed]).toEqual([
      version,
      ["value: 'charged'", "replayed: false", "value: 'charged'", "replayed: true"],
    ]);
  }
  await pressCtrlC(dev);
});

test(
  "the guide's Express program answers the second request with the first response",
  async () => {
    const { project } = packed();
    const workplace = await createWorkplaceWithCluster();
    const dev = await startDev(workplace);
    await linkPackages(project, ["express"]);
    const program = (await firstBlock(HTTP_GUIDE, "js"))
      .replace("http://localhost:50051", dev.grpcUrl)
      .replace(
        "app.listen(3000)",
        'app.listen(0, "127.0.0.1", function () { console.log(this.address().port); })',
      );
    await writeFile(join(project, "server.mjs"), program);
    const server = spawn(process.execPath, ["server.mjs"], {
      cwd: project,
      env: { ONCEWARD_API_KEY: dev.callerKey },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [port] = await once(server.stdout, "data");
      const [, curl = "", show = ""] = await codeBlocks(HTTP_GUIDE, "sh");
      const send = async (command: string) => {
        const here = command.replace("localhost:3000", `127.0.0.1:${String(port).trim()}`);
        return (await run("sh", ["-c", here], { timeout: TIMEOUT_MS })).stdout;
      };
      const first = await send(curl);
      const [second, otherAmount, withoutKey] = [
        await send(curl),
        await send(curl.replace("42", "43")),
        await send(curl.replace(/-H 'idempotency-key[^']*' /, "")),
      ];
      expect(first).toMatch(/^HTTP\/1.1 201 .*\{"id":"ch_1","amount":42\}$/s);
      expect(first).not.toContain("idempotency-replayed");
      expect(second).toMatch(/^HTTP\/1.1 201 .*idempotency-replayed: true.*\{"id":"ch_1","amount":42\}$/is);
      expect([otherAmount, withoutKey].map((response) => response.split(" ")[1])).toEqual(["422", "400"]);

      const key = show.trim().split(" ").at(-1);
      const client = createOnceward({ address: dev.grpcUrl, apiKey: dev.callerKey });
      expect(await client.api.lookup({ namespace: "charges", key: `${key}` })).toMatchObject({
        record: { key },
      });
      await client.close();
    } finally {
      server.kill();
    }
    await pressCtrlC(dev);
  },
  TIMEOUT_MS,
);

test("the tutorial's program charges once, and again after a crash", { timeout: TIMEOUT_MS }, async () => {
  const { project } = packed();
  const dev = await startDev(await createWorkplaceWithCluster());
  const program = await firstBlock("clients/tutorial.md", "js");
  await writeFile(join(project, "charge.mjs"), program.replace("http://localhost:50051", dev.grpcUrl));
  const env = { ONCEWARD_API_KEY: dev.callerKey };
  const charge = async (...args: readonly string[]) =>
    (await run(process.execPath, ["charge.mjs", ...args], { cwd: project, env, timeout: TIMEOUT_MS })).stdout;
  expect(await charge("order-1")).toBe("charging order-1, attempt 1\nch_1\n");
  expect(await charge("order-1")).toBe("ch_1\n");
  await expect(charge("order-2", "crash")).rejects.toMatchObject({ stdout: "charging order-2, attempt 1\n" });
  expect(await charge("order-2")).toBe("charging order-2, attempt 2\nch_2\n");
  await pressCtrlC(dev);
});

test.each(Object.entries(BEFORE_THE_CALL))(
  "the one call of %s is well-typed, and charges once in two processes",
  async (page, before) => {
    const { project } = packed();
    const workplace = await createWorkplaceWithCluster();
    const dev = await startDev(workplace);
    await linkPackages(project, ["@types/node"]);
    const call = (await firstBlock(page, "ts")).replace("http://localhost:50051", dev.grpcUrl);
    await writeFile(join(project, "call.ts"), `${before}${call}${AFTER_THE_CALL}`);
    const errors = await typeErrors(project, "call.ts", ["--types", "node", "--exactOptionalPropertyTypes"]);
    expect(errors.filter((line) => /^call\.ts|@onceward\/client/.test(line))).toEqual([]);

    const env = { ONCEWARD_API_KEY: dev.callerKey };
    const once = () => run(process.execPath, ["call.ts"], { cwd: project, env, timeout: TIMEOUT_MS });
    const charge = { amount: 4200, charge: 1, key: expect.stringMatching(/^[\w-]{43}$/) };
    expect(JSON.parse((await once()).stdout)).toEqual({ charge, charges: 1 });
    expect(JSON.parse((await once()).stdout)).toEqual({ charge, charges: 0 });
    await pressCtrlC(dev);
  },
);
