import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { SQSClient } from "@aws-sdk/client-sqs";
import { onTestFinished } from "vitest";

/** A call of the SDK: its action and its JSON. */
export interface SqsCall {
  readonly action: string;
  readonly input: Record<string, unknown>;
}

/**
 * Starts an endpoint with recorded answers of SQS (JSON protocol 1.0), and the SDK's client of it. It has no
 * queue; tests with a real one are in `test/brokers/`.
 */
export async function startSqsEndpoint(answers: Readonly<Record<string, unknown>> = {}) {
  const calls: SqsCall[] = [];
  const refusals = new Map<string, string>();
  const server = createServer(async (request, response) => {
    const body = await request.toArray();
    const action = String(request.headers["x-amz-target"]).replace("AmazonSQS.", "");
    calls.push({ action, input: JSON.parse(Buffer.concat(body).toString()) });
    response.setHeader("content-type", "application/x-amz-json-1.0");
    const refusal = refusals.get(action);
    if (refusal !== undefined) response.statusCode = 400;
    const answer =
      refusal === undefined ? (answers[action] ?? {}) : { __type: `com.amazonaws.sqs#${refusal}` };
    response.end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new SQSClient({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: "eu-central-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  onTestFinished(async () => {
    client.destroy();
    server.close();
    await once(server, "close");
  });
  /** Refuses an action from now on with this type of error. */
  const refuse = (action: string, type: string) => void refusals.set(action, type);
  return { client, calls, refuse };
}
