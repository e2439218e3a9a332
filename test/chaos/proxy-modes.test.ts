import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { Writable } from "node:stream";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createPacedPipe } from "../helpers/network/paced-pipe.ts";
import { type ProxyMode, startTcpProxy } from "../helpers/network/tcp-proxy.ts";

/** What reached the server, which answers everything with itself. */
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

test("slices carry everything, in order, also when the mode changes in the middle", async () => {
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

test("what is delayed stays in order", async () => {
  const { proxy, client, heard } = await connectThrough("delay");
  client.write("one ");
  await expect.poll(() => asked.join("")).toBe("one ");
  proxy.setMode("forward");
  client.write("two");
  await expect.poll(heard).toBe("one two");
});

test("replies that are dropped leave the request done and the connection open", async () => {
  const { proxy, client, heard } = await connectThrough("drop-replies");
  client.write("lost");
  await expect.poll(() => asked.join("")).toBe("lost");
  proxy.setMode("forward");
  client.write("heard");
  await expect.poll(heard).toMatch(/heard$/);
});

test("a reset cuts the first reply in the middle", async () => {
  const { client, heard, failure } = await connectThrough("reset");
  client.write("12345678");
  await expect.poll(failure).toBe("ECONNRESET");
  expect("1234".startsWith(heard())).toBe(true);
});
