import { fileURLToPath } from "node:url";
import { test } from "vitest";
import { expectEveryEntryWorks } from "../support/packages/entries.ts";
import { usePackedClient } from "../support/packages/packed-client.ts";

const packed = usePackedClient();
const here = (name: string) => fileURLToPath(new URL(`node_modules/${name}`, import.meta.url));

/** The folder of the oldest major of each framework that has several. */
const OLDEST_MAJORS = {
  "@nats-io/jetstream": here("nats-jetstream30"),
  "@temporalio/activity": here("temporal-activity1"),
  "@temporalio/common": here("temporal-common1"),
  amqplib: here("amqplib0"),
  bullmq: here("bullmq5"),
  express: here("express4"),
  "@types/express": here("@types/express4"),
  fastify: here("fastify4"),
};

test("beside the oldest majors of frameworks, every entry type-checks and loads on every Node", async () => {
  await expectEveryEntryWorks(packed(), OLDEST_MAJORS);
});
