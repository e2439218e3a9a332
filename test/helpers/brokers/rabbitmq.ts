import { type ChannelModel, connect } from "amqplib";
import { describe, inject } from "vitest";
import { type RabbitMqBroker, startBroker } from "./rabbitmq-broker.ts";

/** Runs tests that need a RabbitMQ; skips them if none is installed, which the setup prints. */
export function describeWithRabbitMq(title: string, tests: () => void): void {
  describe.runIf(inject("rabbitmqDir") !== "")(title, tests);
}

/** Timeout of the hook that starts a broker. */
export const RABBITMQ_START_TIMEOUT_MS = 120_000;

/** Starts an empty broker for a test file. */
export function startRabbitMq(): Promise<RabbitMqBroker> {
  return startBroker(inject("rabbitmqDir"));
}

/** Opens a connection that `await using` closes. */
export async function connectTo({
  url,
}: RabbitMqBroker): Promise<{ connection: ChannelModel } & AsyncDisposable> {
  const connection = await connect(url);
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}
