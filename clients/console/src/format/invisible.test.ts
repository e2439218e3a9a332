import { describe, expect, it } from "vitest";
import { codePointName, partsOf } from "./invisible.ts";

const invisibleOf = (text: string) =>
  partsOf(text).flatMap(({ text: part, isInvisible }) => (isInvisible ? [codePointName(part)] : []));

describe("partsOf", () => {
  it("sets characters apart that are not seen, or that reorder the text", () => {
    expect(partsOf("live\u202etxt")).toEqual([
      { text: "live", isInvisible: false },
      { text: "\u202e", isInvisible: true },
      { text: "txt", isInvisible: false },
    ]);
    expect(invisibleOf("a\u200bb\u00adc\ufeffd\u0007\te\u2028f\u{e0041}")).toEqual([
      ...["U+200B", "U+00AD", "U+FEFF", "U+0007", "U+0009", "U+2028", "U+E0041"],
    ]);
  });

  it("leaves emoji, accents, other scripts, and lines whole", () => {
    const text = "👩‍👩‍👧 ❤️ 👍🏽 é مرحبا\n日本";
    expect(partsOf(text)).toEqual([{ text, isInvisible: false }]);
    expect(invisibleOf("a\u200db\ufe0f")).toEqual(["U+200D", "U+FE0F"]);
    expect(partsOf("")).toEqual([]);
  });
});
