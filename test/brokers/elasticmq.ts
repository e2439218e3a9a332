import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQSClient } from "@aws-sdk/client-sqs";
import { freePort } from "../helpers/redis/redis.ts";
import { startJava } from "./java.ts";

/** Starts an empty ElasticMQ, which speaks SQS, on loopback. */
export async function startElasticMq(): Promise<{ client: SQSClient; stop: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), "ow-elasticmq-"));
  const port = await freePort();
  const config = join(dir, "elasticmq.conf");
  await writeFile(
    config,
    `include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = ${port}, context-path = "" }
rest-sqs { enabled = true, bind-port = ${port}, bind-hostname = "127.0.0.1" }
rest-stats { enabled = false }`,
  );
  const stop = await startJava(dir, port, [`-Dconfig.file=${config}`, "org.elasticmq.server.Main"]);
  const client = new SQSClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: "eu-central-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  return {
    client,
    async stop() {
      client.destroy();
      await stop();
    },
  };
}
