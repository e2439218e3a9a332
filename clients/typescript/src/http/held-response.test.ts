import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { HeldResponse } from "./held-response.ts";

/** Creates a request as in functions as a service, where the connection is an object that is no socket. */
function requestWithoutSocket() {
  const sent: string[] = [];
  const connection = {
    writable: true,
    _writableState: {},
    on: () => {},
    removeListener: () => {},
    cork: () => {},
    uncork: () => {},
    write: (chunk: string | Uint8Array) => sent.push(chunk.toString()) > 0,
  } as unknown as Socket;
  const request = new IncomingMessage(connection);
  const response = new ServerResponse(request);
  response.assignSocket(connection);
  return { request, response, sent };
}

test("a response is held back also if its connection is not a socket", async () => {
  const { request, response, sent } = requestWithoutSocket();
  const held = new HeldResponse(request, response);
  response.write("char");
  response.end("ged");
  const { status, body } = await held.handled;
  expect({ status, body: body?.toString() }).toEqual({ status: 200, body: "charged" });
  expect(sent).toEqual([]);
  held.send();
  expect(sent.join("")).toMatch(/^HTTP\/1.1 200 OK.*\r\n\r\ncharged$/s);
});
