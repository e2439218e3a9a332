import type { Transport } from "@connectrpc/connect";
import { createOnceward } from "@onceward/client";
import { expect, onTestFinished, test } from "vitest";
import { credentialOf } from "../../clients/typescript/src/transport/credentials.ts";
import { createUnaryTransport } from "../../clients/typescript/src/transport/grpc-transport.ts";
import { SessionManager } from "../../clients/typescript/src/transport/session-manager.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();

/** A client over the transport that `createOnceward` makes for an address, which notes the calls that it is asked for. */
async function newObservedOnceward() {
  const { apiKey } = await createTenant(database);
  const rpcs: string[] = [];
  const sessions = new SessionManager(`http://127.0.0.1:${server.grpcPort}`);
  onTestFinished(() => sessions.abort());
  const shipped = createUnaryTransport(sessions, credentialOf({ apiKey }));
  const transport: Transport = {
    stream: shipped.stream,
    unary(method, ...call) {
      rpcs.push(method.name);
      return shipped.unary(method, ...call);
    },
  };
  return { rpcs, onceward: createOnceward({ transport }) };
}

test("a thousand concurrent runs travel in a handful of batches, and each gets its own value", async () => {
  const { onceward, rpcs } = await newObservedOnceward();
  const runs = Array.from({ length: 1000 }, (_, order) =>
    onceward.run(
      { namespace: "charges", key: `order-${order}`, fingerprint: order },
      () => `charge-${order}`,
    ),
  );
  expect(await Promise.all(runs)).toEqual(Array.from({ length: 1000 }, (_, order) => `charge-${order}`));
  expect(new Set(rpcs)).toEqual(new Set(["Batch"]));
  expect(rpcs.length).toBeLessThan(20);
});

test("replays that do not fit into one reply are all answered", async () => {
  const { onceward, rpcs } = await newObservedOnceward();
  // Enough that each of the batches that they are divided among has more than 4 MiB to bring back.
  const values = Array.from({ length: 300 }, (_, order) => `${order}-${"x".repeat(60_000)}`);
  const runAll = (fn: (value: string) => string) =>
    Promise.all(
      values.map((value, order) =>
        onceward.run({ namespace: "charges", key: `order-${order}` }, () => fn(value)),
      ),
    );
  await runAll((value) => value);
  rpcs.length = 0;
  expect(await runAll(() => "again")).toEqual(values);
  expect(rpcs).toContain("Claim");
});
