import { expect, test } from "vitest";
import { browse } from "../support/console/browser.ts";
import { exchange } from "../support/network/raw-socket.ts";
import { useServer } from "../support/servers/use-server.ts";

const CLAIM = "/onceward.v1.IdempotencyService/Claim";
const LOOKUP = "/onceward.v1.IdempotencyService/Lookup";
const FORM = "application/x-www-form-urlencoded";

const { server } = useServer({ ONCEWARD_CONSOLE: "false" });

test.each([
  ["another path", "GET", "/nowhere", undefined, 404, "/openapi.yaml"],
  ["an unknown method of a service", "POST", `${CLAIM}s`, "application/json", 404, "/openapi.yaml"],
  ["a call by GET", "GET", CLAIM, undefined, 405, "POST"],
  ["a call by DELETE that GET can make", "DELETE", LOOKUP, undefined, 405, "POST, GET"],
  ["a GET without a message", "GET", `${LOOKUP}?key=a`, undefined, 415, "message="],
  ["a form", "POST", CLAIM, FORM, 415, "application/json"],
  ["a document by PUT", "PUT", "/openapi.yaml", undefined, 405, "GET, HEAD"],
])(
  "%s is answered with a line of JSON that says what to send",
  async (_what, method, path, type, status, told) => {
    const headers = type === undefined ? {} : { "content-type": type };
    const answer = await browse(server, path, { method, headers, ...(type && { body: "{}" }) });
    expect([answer.status, answer.headers["content-type"]]).toEqual([status, "application/json"]);
    const code = status === 404 ? "unimplemented" : "invalid_argument";
    expect(answer.json).toEqual({ code, message: expect.stringContaining(told) });
    expect(answer.body.toString().trimEnd()).not.toContain("\n");
    if (status === 405) expect(answer.headers.allow).toBe(told);
  },
);

test("HTTP/2 on the HTTP port is answered with a line of JSON that names the gRPC port", async () => {
  const answer = await exchange(server.httpPort, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  expect(answer).toMatch(
    /^HTTP\/1\.1 400 [\s\S]*\r\n\r\n\{"code":"invalid_argument","message":".*ONCEWARD_GRPC_PORT/,
  );
});

test.each([
  "GET / HTTP/1.1\r\n",
  `POST ${CLAIM} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}`,
  "PUT / HTTP/1.0\r\n",
])("HTTP/1.1 on the gRPC port is answered with a line that names the HTTP port: %j", async (request) => {
  const answer = await exchange(server.grpcPort, request);
  expect(answer).toMatch(
    /^HTTP\/1\.1 400 [\s\S]*content-type: text\/plain[\s\S]*\r\n\r\n.*ONCEWARD_HTTP_PORT.*\n$/,
  );
});
