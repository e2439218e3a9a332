import { type ChannelModel, connect } from "amqplib";
import { describe, inject } from "vitest";
import { type RabbitMqBroker, startBroker } from "./rabbitmq-broker.ts";

/** Runs tests that need a RabbitMQ; they are left out where none is installed, which the setup says. */
export function describeWithRabbitMq(title: string, tests: () => void): void {
  describe.runIf(inject("rabbitmqDir") !== "")(title, tests);
}

/** For the hook that starts one. */
export const RABBITMQ_START_TIMEOUT_MS = 120_000;

/** Starts an empty broker of a test file's own. */
export function startRabbitMq(): Promise<RabbitMqBroker> {
  return startBroker(inject("rabbitmqDir"));
}

/** A connection that `await using` closes. */
export async function connectTo({
  url,
}: RabbitMqBroker): Promise<{ connection: ChannelModel } & AsyncDisposable> {
  const connection = await connect(url);
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}
