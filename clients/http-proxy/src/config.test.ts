import { expect, test } from "vitest";
import { ConfigError, MAX_CONFIG_BYTES, parseConfig } from "./config.ts";

const WHOLE = `routes:
  - path: /charges/:id
    namespace: charges
    caller: { header: x-account }
`;

test("a route has the defaults", () => {
  expect(parseConfig(WHOLE, "routes.yaml")).toEqual([
    {
      ...{ path: "/charges/:id", namespace: "charges", caller: { header: "x-account" }, profile: "onceward" },
      keyHeader: "Idempotency-Key",
      ...{
        ignore: [],
        onError: "release",
        marksBegin: false,
        maxBodyBytes: 1_048_576,
        timeoutMs: 60_000,
        waitMs: 0,
      },
    },
  ]);
});

test("JSON is YAML", () => {
  const route = { path: "/a", namespace: "a", caller: { constant: "all" } };
  expect(parseConfig(JSON.stringify({ routes: [route] }), "routes.json")).toMatchObject([route]);
});

test.each([
  [
    "an unknown member",
    `${WHOLE}    profil: acp\n`,
    /^routes\.yaml:2: routes\[0\]: Unrecognized key: "profil"$/,
  ],
  [
    "a value out of range",
    `${WHOLE}    timeoutMs: 0\n`,
    /^routes\.yaml:5: routes\[0\]\.timeoutMs: Too small: .*>=1$/,
  ],
  ["another profile", `${WHOLE}    profile: paypal\n`, /^routes\.yaml:5: routes\[0\]\.profile: .*"acp"/],
  [
    "a method that is not guarded",
    `${WHOLE}    methods:\n      - GET\n`,
    /^routes\.yaml:6: routes\[0\]\.methods\[0\]: /,
  ],
  [
    "a missing member",
    "routes:\n  - path: /a\n    caller: { constant: all }\n",
    /^routes\.yaml:2: routes\[0\]\.namespace: /,
  ],
  [
    "a path without a slash",
    WHOLE.replace("/charges", "charges"),
    /^routes\.yaml:2: routes\[0\]\.path: must begin/,
  ],
  [
    "a path with an escape of a slash",
    WHOLE.replace("/:id", "%2F:id"),
    /^routes\.yaml:2: routes\[0\]\.path: must not have an escape/,
  ],
  ...["/:id(^1$)", "/:id?", "/a*", "/*/a", "/:id/:id"].map((path): [string, string, RegExp] => [
    `the pattern ${path}`,
    WHOLE.replace("/charges/:id", path),
    /^routes\.yaml:2: routes\[0\]\.path: must have parameters such as :id/,
  ]),
  ...["Authorization", "cookie"].map((name): [string, string, RegExp] => [
    `a caller by the text of ${name}`,
    WHOLE.replace("x-account", name),
    /^routes\.yaml:4: routes\[0\]\.caller: .*is renewed/,
  ]),
  ...[
    ["operation: charge", "stripe"],
    ["keyHeader: X-Key", "acp"],
  ].map(([member, profile]): [string, string, RegExp] => [
    `${member} of the profile ${profile}`,
    `${WHOLE}    profile: ${profile}\n    ${member}\n`,
    /^routes\.yaml:6: routes\[0\]\.(operation|keyHeader): must not be set/,
  ]),
  ["no routes", "routes: []\n", /^routes\.yaml:1: routes: Too small/],
  ["no YAML", "routes: [\n", /^routes\.yaml:2: /],
  ["nothing", "", /^routes\.yaml:1: the file: /],
  [
    "aliases without end",
    `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nroutes: [*c,*c,*c,*c]\n`,
    /Excessive alias/,
  ],
  ["too many bytes", "#".repeat(MAX_CONFIG_BYTES + 1), /must have at most 1048576 bytes/],
])("%s is refused with its line and field", (_, text, message) => {
  expect(() => parseConfig(text, "routes.yaml")).toThrow(ConfigError);
  expect(() => parseConfig(text, "routes.yaml")).toThrow(message);
});
