import { expect, it } from "vitest";
import { recordHref, recordOf } from "./record-address.ts";

it("every key has an address of its own, which names it again", () => {
  const keys = ["a/b", "a%2Fb", "?", "#", "..", ".", "-", "%", "é", " ", "records/x", "<img src=x>"];
  const hrefs = keys.map((key) => recordHref("charges", key));
  expect(new Set(hrefs).size).toBe(keys.length);
  for (const [index, href] of hrefs.entries()) {
    // As a browser resolves it.
    const { pathname, search } = new URL(`/console${href}`, "https://localhost");
    expect(recordOf(pathname, search), href).toEqual({ namespace: "charges", key: keys[index] });
    const opened = new URL(
      `/console${recordHref("charges", keys[index] ?? "", "ambiguous", "owner=a%26b")}`,
      "https://localhost",
    );
    expect(recordOf(opened.pathname, opened.search), href).toEqual({
      namespace: "charges",
      key: keys[index],
    });
    expect(opened.searchParams.get("owner")).toBe("a&b");
  }
});
