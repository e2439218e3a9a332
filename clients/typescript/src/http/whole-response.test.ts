import { expect, test } from "vitest";
import { pickHeaders, responseCodec } from "./whole-response.ts";

const body = new Uint8Array([0, 255]);

test.each([
  { status: 201, headers: { "content-type": "application/pdf", location: "/1" }, body },
  { status: 204, headers: {}, body: new Uint8Array() },
])("a response is what it was when it was stored: %j", (response) => {
  expect(responseCodec.decode(responseCodec.encode(response))).toEqual(response);
});

test("a response larger than any policy allows can't be stored", () => {
  const encode = () => responseCodec.encode({ status: 200, headers: {}, body: undefined });
  expect(encode).toThrow(expect.objectContaining({ reason: "RESULT_TOO_LARGE" }));
});

test("another client's result is not a response", () => {
  expect(() => responseCodec.decode({ payload: body, contentType: "application/json" })).toThrow(TypeError);
});

test("only allowed headers are picked, and repeated ones are joined", () => {
  const allowed = new Set(["link", "etag"]);
  const fromNode = { Link: ["<a>", "<b>"], ETag: '"1"', "content-length": 2, vary: undefined };
  expect(pickHeaders(fromNode, allowed)).toEqual({ link: "<a>, <b>", etag: '"1"' });
  const fromFetch = new Headers([
    ["link", "<a>"],
    ["link", "<b>"],
    ["set-cookie", "a=1"],
  ]);
  expect(pickHeaders(fromFetch, allowed)).toEqual({ link: "<a>, <b>" });
});
