import { expect, test, vi } from "vitest";
import { createHeaderCollector, headerListBytes } from "./header-list.ts";

test("a header list counts its names, its values, and 32 bytes for each header", () => {
  expect(headerListBytes(["te", "trailers", "x", ""])).toBe(2 + 8 + 1 + 2 * 32);
});

test("dead headers are collected once there are too many, and not while there are few", () => {
  const memory = { ...process.memoryUsage(), arrayBuffers: 0, external: 50_000_000 };
  const usage = vi.spyOn(process, "memoryUsage").mockImplementation(() => memory);
  const collect = vi.fn(() => {
    memory.external = 51_000_000;
  });
  const received = createHeaderCollector(11_000_000, collect);
  const receive = () => {
    const bytes = received(["x", "v".repeat(5_000_000)]);
    memory.external += bytes;
  };
  receive();
  receive();
  receive();
  expect(collect).not.toHaveBeenCalled();
  receive();
  expect(collect).toHaveBeenCalledTimes(1);
  // What is still there is in use: it is not collected again.
  receive();
  receive();
  expect(collect).toHaveBeenCalledTimes(1);
  usage.mockRestore();
});

test("headers are collected where the process has no file left to read its size", () => {
  const usage = vi.spyOn(process, "memoryUsage").mockImplementation(() => {
    throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
  });
  const collect = vi.fn();
  createHeaderCollector(11_000_000, collect)(["x", "v".repeat(5_000_000)]);
  expect(collect).toHaveBeenCalledTimes(1);
  usage.mockRestore();
});
