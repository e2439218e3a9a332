import { type NatsServer, startNatsServer } from "../../../test/support/brokers/nats-server.ts";

/** Returns the server of `NATS_URL`, or else starts one for the example. */
export async function findNats(): Promise<NatsServer> {
  const { NATS_URL } = process.env;
  if (NATS_URL) return { address: NATS_URL, stop: async () => {} };
  console.log("Starting NATS ...");
  return await startNatsServer("nats-server");
}
