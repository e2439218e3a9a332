import { afterEach, expect, test, vi } from "vitest";
import { handleFetch } from "./fetch-response.ts";

const LARGE = new Uint8Array(3 * 2 ** 20).fill(7);

afterEach(() => {
  vi.restoreAllMocks();
});

test("a response larger than any policy allows is streamed, also without ReadableStream.from", async () => {
  vi.spyOn(ReadableStream, "from").mockImplementation(() => {
    throw new TypeError("ReadableStream.from is not a function");
  });
  const request = new Request("http://localhost/");
  const { body, sent } = await handleFetch(request, async () => new Response(LARGE)).handled;
  expect(body).toBeUndefined();
  expect(Buffer.from(await sent.arrayBuffer()).equals(LARGE)).toBe(true);
});

test("a client that stops reading closes the handler's stream", async () => {
  const cancel = vi.fn();
  const source = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(2 ** 20)),
    cancel,
  });
  const request = new Request("http://localhost/");
  const { sent } = await handleFetch(request, async () => new Response(source)).handled;
  await sent.body?.cancel();
  expect(cancel).toHaveBeenCalled();
});
