import type { Transport } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { connectLate } from "./late-connection.ts";
import type { Connection } from "./transport-options.ts";

/** The arguments of a call, which this transport does not read. */
const CALL = [] as unknown as Parameters<Transport["unary"]>;

function newConnection() {
  const unary = vi.fn(async () => "answer");
  const close = vi.fn();
  return { transport: { unary, stream: unary } as unknown as Transport, close };
}

test("calls wait for a connection's code, and then go to it directly", async () => {
  const loading = Promise.withResolvers<Connection>();
  const connection = newConnection();
  const { transport, close } = connectLate(() => loading.promise);
  const early = transport.unary(...CALL);
  loading.resolve(connection);
  expect(await early).toBe("answer");
  expect(await transport.unary(...CALL)).toBe("answer");
  close();
  expect(connection.close).toHaveBeenCalledOnce();
});

test("a connection that is closed before its code is there opens nothing", async () => {
  const loading = Promise.withResolvers<Connection>();
  const connection = newConnection();
  const { transport, close } = connectLate(() => loading.promise);
  const early = transport.unary(...CALL);
  close();
  loading.resolve(connection);
  await expect(early).rejects.toMatchObject({ reason: "CLOSED" });
  expect(connection.transport.unary).not.toHaveBeenCalled();
});

test("code that can't be loaded fails the calls", async () => {
  const { transport } = connectLate(() => Promise.reject(new Error("no such module")));
  await expect(transport.unary(...CALL)).rejects.toThrow("no such module");
});
