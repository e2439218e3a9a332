/**
 * A process that does one task with the inbox and kills itself before its n-th step. A step is each
 * statement, each call of the service and each of its answers. Prints the name of each step to standard
 * output.
 */

import { writeSync } from "node:fs";
import type { Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createOnceward } from "@onceward/client";
import pg from "pg";
import { completeIn, deliverCompletions, once, pgExecutor } from "../../../clients/typescript/src/inbox.ts";
import { INSERT_EFFECT } from "./caller-database.ts";
import type { Errand } from "./crash.ts";

const errand: Errand = JSON.parse(process.argv[2] ?? "");
let steps = 0;

function step(name: string): void {
  if (steps === errand.dieBefore) process.kill(process.pid, "SIGKILL");
  steps++;
  writeSync(1, `${name}\n`);
}

const connection = new pg.Client({ connectionString: errand.databaseUrl });
await connection.connect();
const client = {
  query(text: string, params: unknown[] = []) {
    // The first three words identify a statement.
    step(text.trim().split(/\s+/, 3).join(" "));
    return connection.query(text, params);
  },
};
const watch: Interceptor = (next) => async (request) => {
  const headers = request.header;
  headers.set("authorization", `Bearer ${errand.apiKey}`);
  step("call");
  const response = await next(request);
  step("answer");
  return response;
};
const transport = createGrpcTransport({ baseUrl: errand.address, interceptors: [watch] });
const onceward = createOnceward({ transport });

async function transaction<T>(work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  const value = await work();
  await client.query("commit");
  return value;
}

async function effect(): Promise<string> {
  await client.query(INSERT_EFFECT, [errand.key, errand.value]);
  return errand.value;
}

const { key } = errand;
switch (errand.errand) {
  case "once":
    await transaction(() => once(pgExecutor(client), { consumer: "billing", key }, effect));
    break;
  case "run":
    await onceward.run({ namespace: "orders", key }, (claim) =>
      transaction(() => completeIn(pgExecutor(client), claim, effect)),
    );
    break;
  case "deliver":
    await deliverCompletions({ onceward, database: pgExecutor(client) });
    break;
}
step("end");
await onceward.close();
await connection.end();
