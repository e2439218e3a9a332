import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { OutcomeUnknownError } from "../http.ts";
import { ResponseDestroyed } from "./guard.ts";
import { HeldResponse } from "./held-response.ts";

/** Holds a response as in functions as a service, where the connection is an object that is not a socket. */
function holdWithoutSocket() {
  const sent: string[] = [];
  const destroySocket = vi.fn();
  const connection = {
    writable: true,
    _writableState: {},
    on: () => {},
    removeListener: () => {},
    cork: () => {},
    uncork: () => {},
    write: (chunk: string | Uint8Array) => sent.push(chunk.toString()) > 0,
    destroy: destroySocket,
  } as unknown as Socket;
  const request = new IncomingMessage(connection);
  const response = new ServerResponse(request);
  response.assignSocket(connection);
  return { held: new HeldResponse(request, response), response, sent, destroySocket };
}

test("a response is held back also if its connection is not a socket", async () => {
  const { held, response, sent } = holdWithoutSocket();
  response.write("char");
  response.end("ged");
  const { status, body } = await held.handled;
  expect({ status, body: body?.toString() }).toEqual({ status: 200, body: "charged" });
  expect(sent).toEqual([]);
  held.send();
  expect(sent.join("")).toMatch(/^HTTP\/1.1 200 OK.*\r\n\r\ncharged$/s);
});

test("a destroyed response looks destroyed at once, takes no data, and is destroyed if abandoned", async () => {
  const { held, response, sent, destroySocket } = holdWithoutSocket();
  response.write("char");
  response.destroy();
  await expect(held.handled).rejects.toBeInstanceOf(ResponseDestroyed);
  expect(response.destroyed).toBe(true);
  const refusal = new Promise((written) => response.write("ged", written));
  expect(await refusal).toBeInstanceOf(ResponseDestroyed);
  response.end("charged");
  expect(destroySocket).not.toHaveBeenCalled();
  held.abandon();
  expect(destroySocket).toHaveBeenCalledOnce();
  expect(response.destroyed).toBe(true);
  expect(sent).toEqual([]);
});

test("a response destroyed after an unknown outcome is replaced, and its connection stays", async () => {
  const { held, response, sent, destroySocket } = holdWithoutSocket();
  const unknown = new OutcomeUnknownError("the bank timed out");
  response.writeHead(500, "Failed", { "content-length": "9", "x-error": "yes" });
  response.write("half of");
  held.noteError(unknown);
  response.destroy();
  await expect(held.handled).rejects.toBe(unknown);
  held.replace({ status: 409, headers: { "content-type": "text/plain" }, body: Buffer.from("unknown") });
  expect(sent.join("")).toMatch(/^HTTP\/1.1 409 Conflict\r\n.*content-length: 7\r\n.*\r\n\r\nunknown$/s);
  expect(sent.join("")).not.toContain("x-error");
  expect(destroySocket).not.toHaveBeenCalled();
});
