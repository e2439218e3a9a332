import { expect, it } from "vitest";
import { providerLinkProblem } from "./policy-bounds.ts";

it("a link leads to the provider's own https site, whichever key fills it", () => {
  expect(providerLinkProblem("https://pay.example/search?q={key}&worker={owner}#{key}")).toBeUndefined();
  const refused = {
    "javascript:alert({key})": "https",
    "http://pay.example/{key}": "https",
    "https://user:secret@pay.example/{key}": "without a user",
    "https://{key}/": "after the host",
    "https://pay.example{key}/x": "after the host",
    "https://pay.example:{key}/x": "https",
    "https://pay.example/": "{key}",
    "https://pay.example/{key}/{tenant}": "no other braces",
    "https://pay.example/{key}\n": "printable",
    "https://pay.example/é{key}": "printable",
    [`https://pay.example/{key}${"x".repeat(512)}`]: "512 bytes",
  };
  for (const [link, problem] of Object.entries(refused))
    expect(providerLinkProblem(link), link).toContain(problem);
});
