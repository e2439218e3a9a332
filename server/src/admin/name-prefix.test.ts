import { expect, it } from "vitest";
import { rangeOfPrefix } from "./name-prefix.ts";

it("the range of a prefix has exactly the names that begin with it", () => {
  const names = ["0", "a", "a-", "a--", "a-z", "a.", "a.b", "a0", "a_", "aa", "az", "b", "b-zz", "z", "zz"];
  for (const prefix of ["", ...names]) {
    const { after, before } = rangeOfPrefix(prefix);
    const inRange = names.filter((name) => name > after && name < before);
    expect(inRange, prefix).toEqual(names.filter((name) => name.startsWith(prefix)));
  }
});
