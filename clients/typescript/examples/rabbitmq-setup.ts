import {
  RABBITMQ_DIR,
  type RabbitMqBroker,
  startBroker,
} from "../../../test/support/brokers/rabbitmq-broker.ts";

/** Returns the broker of `RABBITMQ_URL`, or else starts one for the example. */
export async function findRabbitMq(): Promise<RabbitMqBroker> {
  const { RABBITMQ_URL } = process.env;
  if (RABBITMQ_URL) return { url: RABBITMQ_URL, stop: async () => {} };
  console.log("Starting RabbitMQ ...");
  return await startBroker(RABBITMQ_DIR);
}
