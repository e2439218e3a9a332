import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CredentialInvalidError, InvalidRequestError } from "../errors/catalogue.ts";
import { isRetryable } from "../errors/mapping.ts";
import { credentialOf, type TokenSource, unsharedCredentialOf } from "./credentials.ts";

const MINUTE_MS = 60_000;
const invalid = () => new CredentialInvalidError("The credential is not valid.");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: 0 });
  source = numbered();
  credential = credentialOf({ token: source });
});

afterEach(() => {
  vi.useRealTimers();
});

function numbered() {
  return vi.fn(async () => ({
    token: `t${source.mock.calls.length}`,
    expiresAt: new Date(Date.now() + 10 * MINUTE_MS),
  }));
}
let source: ReturnType<typeof numbered>;
let credential: ReturnType<typeof credentialOf>;

const echo = async (authorization: string) => authorization;

test("concurrent calls share one token, and later calls use it until the last minute of its life", async () => {
  expect(await Promise.all([credential.use(echo), credential.use(echo)])).toEqual(["Bearer t1", "Bearer t1"]);
  vi.setSystemTime(9 * MINUTE_MS - 1);
  expect(await credential.use(echo)).toBe("Bearer t1");
  expect(source).toHaveBeenCalledTimes(1);
  // The token is still valid: this call does not wait for the next one.
  vi.setSystemTime(9 * MINUTE_MS);
  expect(await credential.use(echo)).toBe("Bearer t1");
  expect(source).toHaveBeenCalledTimes(2);
  await vi.waitUntil(async () => (await credential.use(echo)) === "Bearer t2");
});

test("a call with an expired token waits for the next one", async () => {
  await credential.use(echo);
  vi.setSystemTime(10 * MINUTE_MS);
  expect(await credential.use(echo)).toBe("Bearer t2");
});

test("a JSON Web Token says itself when it expires", async () => {
  const jwt = (exp: number) =>
    `e30.${Buffer.from(JSON.stringify({ exp, sub: "ä?>" })).toString("base64url")}.sig`;
  const token = vi.fn<TokenSource>(async () => jwt(600));
  const credential = credentialOf({ token });
  await credential.use(echo);
  vi.setSystemTime(8 * MINUTE_MS);
  await credential.use(echo);
  expect(token).toHaveBeenCalledTimes(1);
  vi.setSystemTime(10 * MINUTE_MS);
  await credential.use(echo);
  expect(token).toHaveBeenCalledTimes(2);
});

test("calls whose token is refused are made once more, with one new token", async () => {
  const call = vi.fn(async (authorization: string) => {
    if (authorization === "Bearer t1") throw invalid();
    return authorization;
  });
  const calls = [credential.use(call), credential.use(call), credential.use(call)];
  expect(await Promise.all(calls)).toEqual(Array(3).fill("Bearer t2"));
  expect(source).toHaveBeenCalledTimes(2);
  expect(call).toHaveBeenCalledTimes(6);
});

test("a call that is refused late uses the token that another call got in the meantime", async () => {
  const answer = Promise.withResolvers<void>();
  const late = credential.use(async (authorization) => {
    await answer.promise;
    if (authorization === "Bearer t1") throw invalid();
    return authorization;
  });
  await credential.use((authorization) =>
    authorization === "Bearer t1" ? Promise.reject(invalid()) : Promise.resolve(),
  );
  answer.resolve();
  expect(await late).toBe("Bearer t2");
  expect(source).toHaveBeenCalledTimes(2);
});

test("a refusal is final for a second token, for the same token again, and for an API key", async () => {
  const call = vi.fn(() => Promise.reject(invalid()));
  await expect(credential.use(call)).rejects.toThrow(CredentialInvalidError);
  expect(call).toHaveBeenCalledTimes(2);
  await expect(credentialOf({ token: () => "same" }).use(call)).rejects.toThrow(CredentialInvalidError);
  expect(call).toHaveBeenCalledTimes(3);
  await expect(credentialOf({ apiKey: "ow_x_y" }).use(call)).rejects.toThrow(CredentialInvalidError);
  expect(call).toHaveBeenCalledTimes(4);
});

test("another error of a call renews nothing", async () => {
  const failing = credential.use(() => Promise.reject(new Error("away")));
  await expect(failing).rejects.toThrow("away");
  expect(source).toHaveBeenCalledTimes(1);
});

test("a failing source fails only calls that need a token, which may be retried", async () => {
  const token = vi.fn<TokenSource>().mockRejectedValue(new Error("no issuer"));
  const credential = credentialOf({ token });
  const error = await credential.use(echo).catch((cause: unknown) => cause);
  expect(error).toMatchObject({ reason: "TOKEN_UNAVAILABLE", message: "There is no token: no issuer" });
  expect(isRetryable(error as never)).toBe(true);
  token.mockResolvedValueOnce({ token: "t1", expiresAt: new Date(10 * MINUTE_MS) });
  expect(await credential.use(echo)).toBe("Bearer t1");
  vi.setSystemTime(9.5 * MINUTE_MS);
  expect(await credential.use(echo)).toBe("Bearer t1");
  // Until the renewal has failed.
  await new Promise((resolve) => setImmediate(resolve));
  expect(await credential.use(echo)).toBe("Bearer t1");
  // A source that fails is not asked by every call.
  expect(token).toHaveBeenCalledTimes(3);
});

test("a token that can't be in a header is refused, and not shown", async () => {
  const error = await credentialOf({ token: () => "secret token" })
    .use(echo)
    .catch((cause: unknown) => cause);
  expect(error).toMatchObject({ reason: "TOKEN_UNAVAILABLE" });
  expect(String(error)).not.toContain("secret");
});

test("an API key and a token together are refused, and a token that is not a function", () => {
  expect(() => credentialOf({ apiKey: "ow_x_y", token: () => "" } as never)).toThrow(InvalidRequestError);
  expect(() => credentialOf({ token: "ow_x_y" as never })).toThrow(/^token must be a function/);
});

test("a call of an unshared credential does not wait for the source's answer to another call", async () => {
  const answers = [Promise.withResolvers<string>().promise, Promise.resolve("t-2")];
  const credential = unsharedCredentialOf({ token: () => answers.shift() ?? "none" });
  const call = vi.fn(async (authorization: string) => authorization);
  void credential.use(call).catch(() => {});
  expect(await credential.use(call)).toBe("Bearer t-2");
  expect(await credential.use(call)).toBe("Bearer t-2");
  expect(answers).toEqual([]);
});
