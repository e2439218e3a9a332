import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { responseCodec } from "../../typescript/src/http/whole-response.ts";
import { UsageError } from "./failure.ts";
import { parseHttpStatus, readResolution } from "./resolution.ts";

test("a result in a file is stored byte for byte; too large, not UTF-8 or missing is refused", async () => {
  const dir = await mkdtemp(join(tmpdir(), "ow-resolution-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, "result.json");
  const resolve = () => readResolution({ complete: `@${file}` });
  await expect(resolve()).rejects.toThrow(`${file} can't be read: ENOENT.`);
  const largest = Buffer.from(`"${"x".repeat(1024 * 1024 - 2)}"`);
  await writeFile(file, largest);
  const resolution = await resolve();
  const payload = resolution.case === "complete" ? resolution.result.payload : undefined;
  expect(largest.equals(payload ?? Buffer.alloc(0))).toBe(true);
  await writeFile(file, `${largest} `);
  await expect(resolve()).rejects.toThrow(`${file} has more than 1048576 bytes.`);
  await writeFile(file, Buffer.from([0x22, 0xff, 0x22]));
  await expect(resolve()).rejects.toThrow(`${file} is not UTF-8.`);
});

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
