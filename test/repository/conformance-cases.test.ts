import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { REMEDIES } from "../tools/generate/errors/remedies.ts";

interface ErrorCase {
  readonly service: readonly { readonly error?: { readonly reason: string } }[];
  readonly expect: {
    readonly outcome: { readonly runs: readonly { readonly error: { readonly remedy?: object } }[] };
  };
}

const FILE = new URL("../../clients/conformance/cases/errors.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(FILE, "utf8")) as { readonly cases: readonly ErrorCase[] };

/** Returns a remedy without the links, which lead through the guides of one language. */
function withoutLinks(remedy: string): string {
  return remedy.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
}

test.each(Object.entries(REMEDIES))("%s has a case, with the remedy of the guide", (reason, remedy) => {
  const found = cases.find(({ service: [first] }) => first?.error?.reason === reason);
  expect(found?.expect.outcome.runs[0]?.error.remedy).toEqual({ $remedy: withoutLinks(remedy) });
});
