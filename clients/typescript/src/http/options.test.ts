import { expect, test } from "vitest";
import { type HttpOptions, httpPolicy } from "./options.ts";

const options: HttpOptions<unknown> = { namespace: "charges", caller: () => "a-1" };

test.each(["Set-Cookie", "connection", "Transfer-Encoding", "content-length"])(
  "%s is never replayed",
  (name) => {
    expect(() => httpPolicy({ ...options, replayHeaders: [name] })).toThrow(TypeError);
  },
);

test("the option caller is required", () => {
  const { caller: _, ...anonymous } = options;
  expect(() => httpPolicy(anonymous as HttpOptions<unknown>)).toThrow("caller must be a function");
});

test("a response that asks for another attempt is not stored", () => {
  const { stores } = httpPolicy(options);
  const released = Array.from({ length: 500 }, (_, index) => 100 + index).filter((status) => !stores(status));
  expect(released.filter((status) => status < 500)).toEqual([401, 408, 425, 429]);
  expect(released.filter((status) => status >= 500)).toHaveLength(100);
});
