import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test, vi } from "vitest";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { granted } from "../support/calls/records.ts";
import { startTcpProxy, type TcpProxy } from "../support/network/tcp-proxy.ts";
import { useCaller, useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();
const { tenant, client: direct } = useCaller({ database, server });

/** Returns a client with an open connection through a proxy. */
async function connectThroughProxy(): Promise<{ client: IdempotencyClient; proxy: TcpProxy }> {
  const proxy = await startTcpProxy(server.grpcPort);
  onTestFinished(() => proxy.close());
  const client = connectClient({ ...server, grpcPort: proxy.port }, tenant.apiKey);
  await client.lookup({ namespace: "charges", key: "connected" });
  return { client, proxy };
}

/** Makes a call whose reply is cut off, and waits until the call has changed the record. */
async function loseReply(
  proxy: TcpProxy,
  key: string,
  state: number,
  call: () => Promise<unknown>,
): Promise<void> {
  proxy.setMode("lose-replies");
  await expect(call()).rejects.toThrow();
  proxy.setMode("forward");
  const find = () =>
    database.query("select from records where tenant_id = $1 and key = $2 and state = $3", [
      tenant.id,
      key,
      state,
    ]);
  await vi.waitUntil(async () => (await find()).length === 1, { timeout: 30_000, interval: 5 });
}

test("a claim whose reply was lost has the same answer when it is repeated with its claim id", async () => {
  const { client, proxy } = await connectThroughProxy();
  const request = { namespace: "charges", key: "lost-claim", claimId: randomUUID() };
  await loseReply(proxy, request.key, 1, () => client.claim(request));
  const again = granted(await client.claim(request));
  const once = granted(await direct.claim(request));
  expect(again).toMatchObject({ attempt: 1, fencingToken: once.fencingToken });
  expect((await direct.claim({ ...request, claimId: randomUUID() })).outcome.case).toBe("inProgress");
});

test("a complete whose reply was lost succeeds when it is repeated", async () => {
  const { client, proxy } = await connectThroughProxy();
  const id = { namespace: "charges", key: "lost-complete" };
  const { fencingToken } = granted(await client.claim(id));
  const request = { ...id, fencingToken, result: { kind: Result_Kind.SUCCESS, payload: Buffer.from("x") } };
  await loseReply(proxy, id.key, 2, () => client.complete(request));
  expect(await client.complete(request)).toMatchObject({ alreadyCompleted: true });
});

test("a release whose reply was lost succeeds when it is repeated", async () => {
  const { client, proxy } = await connectThroughProxy();
  const id = { namespace: "charges", key: "lost-release" };
  const { fencingToken } = granted(await client.claim(id));
  await loseReply(proxy, id.key, 3, () => client.release({ ...id, fencingToken }));
  await client.release({ ...id, fencingToken });
  expect(granted(await direct.claim(id)).attempt).toBe(2);
});
