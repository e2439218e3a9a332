import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Host } from "./host.ts";
import { Output } from "./output.ts";
import { createWithSecret } from "./secret-file.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "ow-secret-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const output = new Output({ write: () => {}, warn: () => {} } as Partial<Host> as Host, true);
const created = async () => ({ secret: "s3cret" });

test("a secret is written to a file that only its owner can read, and is not printed", async () => {
  const out = join(dir, "payments.key");
  const print = vi.fn();
  await createWithSecret(out, output, created, print);
  expect((await stat(out)).mode & 0o777).toBe(0o600);
  expect(await readFile(out, "utf8")).toBe("s3cret\n");
  expect(print).toHaveBeenCalledExactlyOnceWith({ secret: "" });
});

test("no key is created if the file exists, and no file stays if no key is created", async () => {
  const create = vi.fn(created);
  const existing = createWithSecret(join(dir, "payments.key"), output, create, vi.fn());
  await expect(existing).rejects.toThrow("--out: EEXIST");
  expect(create).not.toHaveBeenCalled();
  const refuse = () => Promise.reject(new Error("refused"));
  await expect(createWithSecret(join(dir, "other.key"), output, refuse, vi.fn())).rejects.toThrow("refused");
  expect(await readdir(dir)).toEqual(["payments.key"]);
});
