/**
 * `npm run example -- agents`: an agent whose process is killed in the middle of a refund. It is started again until its run
 * ends, and each time the model asks for the refund once more. The bank has no idempotency keys: its ledger is a file. The
 * first agent asks the bank what became of the refund; the second one can't, and its model is told that the outcome is unknown.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOnceward } from "@onceward/client";
import { aiSdkTools, createAgentRun, didNotHappen, happened } from "@onceward/client/agents";
import { generateText, jsonSchema, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { findService, prove } from "./setup.ts";

const AGENTS = ["asking", "not-asking"];
const MAX_STARTS = 5;

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const finishReason = { unified: "tool-calls", raw: undefined };

/** Returns a model that refunds order 7 in its first step. Its tool call has a new id each time. */
function newModel() {
  const toolCallId = crypto.randomUUID();
  const call = { type: "tool-call", toolCallId, toolName: "refund", input: '{"order":"7"}' };
  const texts = [{ type: "text", text: "The refund is settled, or a person checks it." }];
  return new MockLanguageModelV4({
    doGenerate: [
      { content: [call], finishReason, usage, warnings: [] },
      { content: texts, finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] },
    ] as never,
  });
}

async function ordersIn(ledger: string): Promise<string[]> {
  const text = await readFile(ledger, "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** Runs the agent in this process. The process dies after the money has moved, the first time. */
async function runAgent(runId: string, ledger: string, isAsking: boolean): Promise<void> {
  const { address, apiKey } = await findService();
  await using onceward = createOnceward({ address, apiKey });
  const run = createAgentRun(onceward, {
    namespace: "example-agents",
    runId,
    leaseMs: 1000,
    ...(isAsking && {
      async resolve() {
        const isRefunded = (await ordersIn(ledger)).includes("7");
        return isRefunded ? happened("refunded") : didNotHappen();
      },
    }),
  });
  const refund = tool({
    inputSchema: jsonSchema<{ order: string }>({ type: "object" }),
    async execute({ order }) {
      await appendFile(ledger, `${order}\n`);
      process.kill(process.pid, "SIGKILL");
    },
  });
  const model = newModel();
  const messages = [{ role: "user" as const, content: "Refund order 7." }];
  await generateText({
    model,
    messages,
    tools: aiSdkTools(run, { refund }),
    stopWhen: ({ steps }) => steps.length === 2,
  });
  console.log(
    `${runId}: the model was told: ${JSON.stringify(model.doGenerateCalls[1]?.prompt.at(-1)?.content)}`,
  );
}

/** Starts the agent's process until its run ends. Returns the number of starts. */
async function superviseAgent(runId: string, ledger: string, agent: string): Promise<number> {
  for (let starts = 1; starts <= MAX_STARTS; starts++) {
    const [code] = await once(fork(import.meta.filename, [runId, ledger, agent]), "exit");
    if (code === 0) return starts;
  }
  return MAX_STARTS;
}

const [runId, ledger = "", agent] = process.argv.slice(2);
if (runId === undefined) {
  await findService();
  const dir = await mkdtemp(join(tmpdir(), "example-agents-"));
  await Promise.all(
    AGENTS.map(async (name) => {
      const file = join(dir, `${name}.txt`);
      const starts = await superviseAgent(`${name}-${crypto.randomUUID()}`, file, name);
      prove(`starts of the agent (${name})`, starts, 2);
      prove(`refunds in the bank's ledger (${name})`, (await ordersIn(file)).length, 1);
    }),
  );
  await rm(dir, { recursive: true });
} else {
  await runAgent(runId, ledger, agent === "asking");
}
