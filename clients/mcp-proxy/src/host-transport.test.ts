import { PassThrough } from "node:stream";
import { expect, test, vi } from "vitest";
import { HostTransport } from "./host-transport.ts";

const MIB = 1024 * 1024;

test("a host that leaves more than 64 MiB unread ends the transport, and gets no more", async () => {
  const output = new PassThrough();
  const transport = new HostTransport(new PassThrough(), output);
  transport.onclose = vi.fn();
  const message = { jsonrpc: "2.0", id: 1, result: { text: "x".repeat(8 * MIB) } } as const;
  // Each that is written waits until the host reads.
  const refused = Promise.race(Array.from({ length: 12 }, () => transport.send(message).catch(String)));
  expect(await refused).toContain("the host has left more than 67108864 bytes unread");
  expect(transport.onclose).toHaveBeenCalled();
  expect(output.writableLength + output.readableLength).toBeLessThan(12 * 8 * MIB);
});

test("reading pauses while more than 64 MiB of the host's messages are not handled", async () => {
  const input = new PassThrough();
  const transport = new HostTransport(input, new PassThrough());
  const handled: (() => void)[] = [];
  transport.onmessage = () => new Promise((resolve) => handled.push(resolve));
  await transport.start();
  const line = `${JSON.stringify({ jsonrpc: "2.0", method: "note", params: { text: "x".repeat(8 * MIB) } })}\n`;
  for (let n = 0; n < 12; n++) input.write(line);
  await vi.waitUntil(() => input.isPaused(), 30_000);
  expect(handled).toHaveLength(8);
  for (let n = 0; n < 12; n++) {
    await vi.waitUntil(() => handled.length > 0, 30_000);
    handled.shift()?.();
  }
  await vi.waitUntil(() => !input.isPaused(), 30_000);
  expect(input.readableLength).toBe(0);
});
