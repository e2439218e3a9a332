import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { createOnceward } from "@onceward/client";
import express from "express";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { idempotency } from "../../clients/typescript/src/express.ts";
import { send } from "../adapters/http/http-client.ts";
import { listen } from "../adapters/http/listen.ts";
import { GO_TIMEOUT_MS, go, installGoClient } from "../support/packages/go.ts";
import { installPythonClient } from "../support/packages/python.ts";
import { createWorkplaceWithCluster } from "../support/processes/command.ts";
import { pressCtrlC, startDev } from "../support/processes/dev.ts";

/** One route that servers in several languages answer, as during a rewrite: a key has one effect in all of them. */

const run = promisify(execFile);
const [python, golang] = [await installPythonClient(), await installGoClient()];
for (const { kind, ...environment } of [python, golang])
  if (kind === "missing" && "why" in environment)
    process.stderr.write(`One route in several languages is skipped: ${environment.why}.\n`);

afterAll(async () => {
  for (const environment of [python, golang]) if (environment.kind === "ready") await environment.remove();
});

const PYTHON = `
import os
from fastapi import FastAPI
from starlette.testclient import TestClient
from onceward import aio
from onceward.starlette import OncewardMiddleware

app = FastAPI()
app.add_middleware(
    OncewardMiddleware,
    onceward=aio.Onceward(os.environ["ADDRESS"], api_key=os.environ["ONCEWARD_API_KEY"]),
    namespace="refunds",
    caller=lambda request: request.headers["account"],
    operation="refund",
)

@app.post("/charges/{charge}/refunds", status_code=201)
async def refund(charge: str):
    return {"by": "FastAPI"}

headers = {"account": "a-1", "idempotency-key": '"k-1"', "content-type": "application/json"}
answer = TestClient(app).post("/charges/42/refunds", content='{ "currency":"EUR","cents":100.0 }', headers=headers)
print(answer.status_code, answer.text)
`;

const GO = `package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardhttp"
)

func main() {
	client, err := onceward.New(os.Getenv("ADDRESS"), onceward.Options{APIKey: os.Getenv("ONCEWARD_API_KEY")})
	if err != nil {
		panic(err)
	}
	guard, err := oncewardhttp.New(client, oncewardhttp.Options{
		Namespace: "refunds",
		Operation: "refund",
		Caller:    func(r *http.Request) string { return r.Header.Get("Account") },
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /charges/{id}/refunds", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "{\\"by\\":\\"net/http\\"}")
	})))
	request := httptest.NewRequest("POST", "/charges/42/refunds", strings.NewReader("{\\"cents\\": 1e2, \\"currency\\": \\"EUR\\"}"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Account", "a-1")
	request.Header.Set("Idempotency-Key", "k-1")
	response := httptest.NewRecorder()
	mux.ServeHTTP(response, request)
	fmt.Println(response.Code, response.Body)
}
`;

test.runIf(python.kind === "ready" && golang.kind === "ready")(
  "one key has one effect in Express, FastAPI and net/http",
  { timeout: 2 * GO_TIMEOUT_MS },
  async () => {
    if (python.kind !== "ready" || golang.kind !== "ready") throw new Error("a language is missing");
    const dev = await startDev(await createWorkplaceWithCluster());
    const onceward = createOnceward({ address: dev.grpcUrl, apiKey: dev.callerKey });
    onTestFinished(() => onceward.close());
    const caller = (req: express.Request) => req.get("account") ?? "";
    const once = idempotency(onceward, { namespace: "refunds", caller, operation: "refund" });
    const app = express().use(express.json());
    app.post("/charges/:id/refunds", once, (_req, res) => void res.status(201).json({ by: "Express" }));
    const server = await listen(createServer(app));
    onTestFinished(() => server.close());

    const first = await send(server.port, {
      path: "/charges/42/refunds",
      headers: { account: "a-1", "idempotency-key": "k-1" },
      body: '{"cents":100,"currency":"EUR"}',
    });
    expect([first.status, first.body.toString()]).toEqual([201, '{"by":"Express"}']);
    const env = { ADDRESS: dev.grpcUrl, ONCEWARD_API_KEY: dev.callerKey };
    const { stdout } = await run(python.python, ["-c", PYTHON], { env: { ...process.env, ...env } });
    await writeFile(join(golang.dir, "main.go"), GO);
    await go(golang.dir, ["mod", "tidy"]);
    const replay = '201 {"by":"Express"}\n';
    expect([stdout, await go(golang.dir, ["run", "main.go"], env)]).toEqual([replay, replay]);
    await pressCtrlC(dev);
  },
);
