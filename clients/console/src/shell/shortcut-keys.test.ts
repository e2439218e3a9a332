import { describe, expect, it } from "vitest";
import { type KeyState, nextKeyState, START, type Typed } from "./shortcut-keys.ts";

function typedBy(keys: readonly (readonly [key: string, atMs: number])[]): readonly (Typed | undefined)[] {
  let state: KeyState = START;
  return keys.map(([key, atMs]) => {
    const next = nextKeyState(state, key, atMs);
    state = next.state;
    return next.typed;
  });
}

describe("shortcuts", () => {
  it("open a screen with g and its letter", () => {
    expect(
      typedBy([
        ["g", 0],
        ["r", 500],
      ]),
    ).toEqual([undefined, { kind: "go", letter: "r" }]);
  });

  it("forget g after a while", () => {
    expect(
      typedBy([
        ["g", 0],
        ["r", 1_501],
      ]),
    ).toEqual([undefined, { kind: "key", key: "r" }]);
  });

  it("keep g while a modifier is pressed", () => {
    expect(
      typedBy([
        ["g", 0],
        ["Shift", 100],
        ["r", 200],
      ])[2],
    ).toEqual({ kind: "go", letter: "r" });
  });

  it("show help with ?, and hand other keys to the screen", () => {
    expect(
      typedBy([
        ["?", 0],
        ["x", 1],
      ]),
    ).toEqual([{ kind: "help" }, { kind: "key", key: "x" }]);
  });
});
