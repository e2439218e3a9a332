import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { readEndpoint } from "../../../clients/cli/src/probe/endpoint.ts";
import { probeServer, SERVER_CHECKS } from "../../../clients/cli/src/probe/mcp/probe-server.ts";
import * as sdk from "../../../clients/mcp-proxy/src/index.ts";
import { listen } from "../../adapters/http/listen.ts";
import { newDir } from "../../support/new-dir.ts";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";
import { cliWith } from "../../support/processes/cli.ts";
import { httpServerIn } from "./mutant-mcp.ts";

const programOf = (name: string) => `${process.execPath} ${fileURLToPath(new URL(name, import.meta.url))}`;
const cli = cliWith({ PATH: process.env.PATH ?? "" });
const BOUNDS = { requests: 2000, bytes: 64 * 1024 * 1024, seconds: 60, perSecond: 1e6, requestMs: 10_000 };

/** Starts a server that breaks one promise. Returns what can be said about its tool. */
async function mutant(kind: "stdio" | "http", fault: string) {
  const dir = await newDir();
  const ledger = join(dir, "ledger");
  await writeFile(ledger, "");
  const said = {
    ...{ tools: ["create_charge"], allowWrites: true, lateMs: 0 },
    body: '{"order":"{{id}}"}',
    otherBody: '{"order":"{{id}}","amount":2}',
    countCommand: ["sh", "-c", `wc -c < ${ledger}`],
  };
  if (kind === "stdio")
    return readEndpoint({ ...said, mcp: `${programOf("mutant-mcp.ts")} ${dir} ${fault}` });
  const { port, close } = await listen(httpServerIn(dir, fault));
  onTestFinished(close);
  const origin = `http://127.0.0.1:${port}`;
  const restart = [process.execPath, "-e", `await fetch('${origin}/restart')`];
  return readEndpoint({ ...said, mcp: `${origin}/mcp`, restartCommand: restart });
}

async function failuresOf(kind: "stdio" | "http", fault: string, only?: readonly string[]) {
  const reports = await probeServer(sdk, await mutant(kind, fault), {
    env: CHILD_ENVIRONMENT,
    bounds: BOUNDS,
    ...(only && { only }),
  });
  return reports.flatMap(({ findings }) =>
    findings.flatMap(({ check, verdict }) => {
      // The right server's answer may come before its cancellation.
      const isFine =
        verdict.kind === "passed" || (verdict.kind === "nothing" && check.id === "call.cancelled");
      return isFine ? [] : [{ id: check.id, ...verdict }];
    }),
  );
}

test.each(["stdio", "http"] as const)("a right server over %s passes every check", async (kind) => {
  expect(await failuresOf(kind, "")).toEqual([]);
});

test.each(SERVER_CHECKS.map(({ id }) => id))(
  "%s alone fails on a server that breaks this promise",
  async (id) => {
    const isOfList = id.startsWith("list.");
    const failures = await failuresOf(isOfList ? "http" : "stdio", id, isOfList ? undefined : [id]);
    expect(failures).toMatchObject([{ id, kind: "failed" }]);
  },
);

test.each(["repeated", "twins", "restart", "other-arguments"])(
  "call.%s fails over HTTP, too",
  async (name) => {
    const id = `call.${name}`;
    expect(await failuresOf("http", id, [id])).toMatchObject([{ id, kind: "failed" }]);
  },
);
