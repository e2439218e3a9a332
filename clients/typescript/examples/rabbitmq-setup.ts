import {
  RABBITMQ_DIR,
  type RabbitMqBroker,
  startBroker,
} from "../../../test/helpers/brokers/rabbitmq-broker.ts";

/** The broker that `RABBITMQ_URL` names, or else one of the example's own. */
export async function findRabbitMq(): Promise<RabbitMqBroker> {
  const { RABBITMQ_URL } = process.env;
  if (RABBITMQ_URL) return { url: RABBITMQ_URL, stop: async () => {} };
  console.log("Starting RabbitMQ ...");
  return await startBroker(RABBITMQ_DIR);
}
