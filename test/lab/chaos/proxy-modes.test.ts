import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { Writable } from "node:stream";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createPacedPipe } from "../../support/network/paced-pipe.ts";
import { type ProxyMode, startTcpProxy } from "../../support/network/tcp-proxy.ts";

/** The requests that reached the server, which echoes them. */
let asked: string[] = [];
const echo = createServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    asked.push(String(bytes));
    socket.write(bytes);
  });
});

beforeAll(async () => {
  echo.listen(0, "127.0.0.1");
  await once(echo, "listening");
});

afterAll(() => {
  echo.close();
});

async function connectThrough(mode: ProxyMode) {
  asked = [];
  const proxy = await startTcpProxy((echo.address() as AddressInfo).port);
  proxy.setMode(mode);
  const client = connect(proxy.port, "127.0.0.1");
  let heard = "";
  let failure = "";
  client.on("data", (bytes) => {
    heard += bytes;
  });
  client.on("error", (error: NodeJS.ErrnoException) => {
    failure = error.code ?? "";
  });
  onTestFinished(async () => {
    client.destroy();
    await proxy.close();
  });
  return { proxy, client, heard: () => heard, failure: () => failure };
}

test("slices carry all bytes in order, also when the mode changes in between", async () => {
  const { proxy, client, heard } = await connectThrough("slice");
  const text = "abcdefghijklmnopqrstuvwxyz".repeat(20);
  client.write(text);
  await once(client, "data");
  proxy.setMode("forward");
  client.write("the end");
  await expect.poll(heard).toBe(`${text}the end`);
});

test("a slice is one byte", async () => {
  const written: string[] = [];
  const to = new Writable({
    write(bytes, _, done) {
      written.push(String(bytes));
      done();
    },
  });
  createPacedPipe(to, () => "byte by byte")(Buffer.from("abc"));
  await expect.poll(() => written).toEqual(["a", "b", "c"]);
});

test("delayed bytes stay in order", async () => {
  const { proxy, client, heard } = await connectThrough("delay");
  client.write("one ");
  await expect.poll(() => asked.join("")).toBe("one ");
  proxy.setMode("forward");
  client.write("two");
  await expect.poll(heard).toBe("one two");
});

test("a dropped reply leaves the request executed and the connection open", async () => {
  const { proxy, client, heard } = await connectThrough("drop-replies");
  client.write("first");
  await expect.poll(() => asked.join("")).toBe("first");
  client.write("second");
  // The first reply has reached the proxy when the second request reaches the server; the second reply may
  // not have.
  await expect.poll(() => asked.join("")).toBe("firstsecond");
  proxy.setMode("forward");
  client.write("third");
  await expect.poll(heard).toMatch(/^(second)?third$/);
});

test("a reset cuts the connection within the first reply", async () => {
  const { client, heard, failure } = await connectThrough("reset");
  client.write("12345678");
  await expect.poll(failure).toBe("ECONNRESET");
  expect(asked).toEqual(["12345678"]);
  // The system may discard bytes that arrived before a reset.
  expect("1234".startsWith(heard())).toBe(true);
});
