import { expect, test } from "vitest";
import { formatApiKey, generateApiKey, MAX_TOKEN_LENGTH, parseAuthorization } from "./api-key.ts";
import { sliceApiKey } from "./credential-cache.ts";

const API_KEY = generateApiKey();
const TEXT = formatApiKey(API_KEY);
const TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl";

test("an API key and a token are parsed", () => {
  expect(parseAuthorization(`Bearer ${TEXT}`)).toEqual({ kind: "apiKey", apiKey: API_KEY });
  expect(parseAuthorization(`Bearer ${TOKEN}`)).toEqual({ kind: "token", token: TOKEN });
});

test("the scheme is case-insensitive", () => {
  for (const scheme of ["bearer", "BEARER"])
    expect(parseAuthorization(`${scheme} ${TEXT}`)).toEqual({ kind: "apiKey", apiKey: API_KEY });
});

test.each([
  ["nothing", ""],
  ["a scheme alone", "Bearer"],
  ["a scheme and a space", "Bearer "],
  ["another scheme", `Basic ${TEXT}`],
  ["no scheme", TEXT],
  ["two spaces", `Bearer  ${TEXT}`],
  ["a tab for a space", `Bearer\t${TEXT}`],
  ["a space in front", ` Bearer ${TEXT}`],
  ["a trailing space", `Bearer ${TEXT} `],
  ["many spaces", `Bearer ${" ".repeat(4000)}${TEXT}`],
  ["two credentials", `Bearer ${TEXT}, Bearer ${TEXT}`],
  ["padding", `Bearer ${TOKEN}=`],
  ["a text longer than a token", `Bearer ${"a".repeat(MAX_TOKEN_LENGTH + 1)}`],
  ["a text of other characters", `Bearer ${"ü".repeat(63)}`],
  ["a token of two parts", "Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0"],
])("%s is not a credential", (_what, header) => {
  expect(() => parseAuthorization(header)).toThrow(
    expect.objectContaining({
      reason: "CREDENTIAL_INVALID",
      message: expect.stringMatching(/Bearer|ow_|8192/),
    }),
  );
});

test.each([
  ["the scheme", `Basic ${TEXT}`, "Bearer"],
  ["the scheme", TEXT, "Bearer"],
  ["the form and the length", `Bearer ${TEXT.slice(0, -1)}`, "62 characters"],
  ["the limit", `Bearer ${"a".repeat(9000)}`, "8192"],
])("a malformed credential is told %s, and nothing of itself: %s", (_what, header, told) => {
  let message = "";
  try {
    parseAuthorization(header);
  } catch (refusal) {
    message = String(refusal);
  }
  expect(message).toContain(told);
  for (const part of [API_KEY.id, API_KEY.secret.slice(0, 8)]) expect(message).not.toContain(part);
});

test("a key is cut out only of a header with the usual length and separators", () => {
  expect(sliceApiKey(`Bearer ${TEXT}`)).toEqual(API_KEY);
  const others = [
    "",
    `bearer ${TEXT}`,
    `Bearer  ${TEXT}`,
    `Bearer ${TEXT} `,
    `Bearer ${TEXT.slice(0, -1)}`,
    `Bearer ${TOKEN}`,
  ];
  for (const header of others) expect(sliceApiKey(header)).toBeUndefined();
});
