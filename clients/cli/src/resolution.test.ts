import { expect, test } from "vitest";
import { responseCodec } from "../../typescript/src/http/whole-response.ts";
import { UsageError } from "./failure.ts";
import { parseHttpStatus, readResolution } from "./resolution.ts";

test("a result with an HTTP status is a response that guards of HTTP endpoints replay", async () => {
  const resolution = await readResolution({ complete: '{"charge": 1}', httpStatus: parseHttpStatus("201") });
  if (resolution.case !== "complete") throw new Error("not a completion");
  const { payload = new Uint8Array(), contentType = "", metadata = {} } = resolution.result;
  expect(responseCodec.decode({ payload, contentType, metadata })).toEqual({
    status: 201,
    headers: { "content-type": "application/json" },
    body: new TextEncoder().encode('{"charge": 1}'),
  });
});

test("a status that ends no request, and one without a result, are refused", async () => {
  for (const status of ["199", "600", "2e2", ""]) expect(() => parseHttpStatus(status)).toThrow("200-599");
  await expect(readResolution({ release: true, httpStatus: 201 })).rejects.toThrow(UsageError);
});
