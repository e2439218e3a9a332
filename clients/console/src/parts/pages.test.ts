import { describe, expect, it } from "vitest";
import { pageHref, withParameters } from "./pages.ts";

describe("lists in the address", () => {
  it("keep their filters on the next page, and lose the token on the first", () => {
    expect(pageHref("state=ambiguous&page=a", "b+/=")).toBe("?state=ambiguous&page=b%2B%2F%3D");
    expect(pageHref("state=ambiguous&page=a", "")).toBe("?state=ambiguous");
  });

  it("begin at the first page when a filter changes", () => {
    expect(withParameters("state=ambiguous&page=a", { owner: "w&1" })).toBe("state=ambiguous&owner=w%261");
  });

  it("have no empty filters", () => {
    expect(withParameters("state=ambiguous&owner=x", { state: "", owner: "y" })).toBe("owner=y");
  });
});
