import { expect, test } from "vitest";
import { createProvider } from "./provider.ts";

const record = { tenant: "acme", namespace: "charges", key: "order-1" };

test("an unfenced provider charges every caller", () => {
  const provider = createProvider();
  for (const token of [2, 1]) {
    expect(provider.answer({ id: 1, ask: "charge", fenced: false, record, token })).toBe("charged");
  }
  expect(provider.unfenced.map(({ token }) => token)).toEqual([2, 1]);
});

test("a fenced provider charges once, for the newest token", () => {
  const provider = createProvider();
  const ask = (asked: "open" | "charge", token: number) =>
    provider.answer({ id: 1, ask: asked, fenced: true, record, token });
  expect([ask("open", 1), ask("open", 2), ask("charge", 1), ask("charge", 2)]).toEqual([
    "open",
    "open",
    "superseded",
    "charged",
  ]);
  expect(ask("open", 3)).toBe("charged");
  expect(provider.fenced.map(({ token }) => token)).toEqual([2]);
});
