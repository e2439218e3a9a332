import { expect, test, vi } from "vitest";
import type { HttpProfile } from "../../../clients/typescript/src/http.ts";
import type { HttpAnswer } from "./http-client.ts";
import type { Begin, Effect, Reply } from "./http-world.ts";

const charged = { status: 201, cookies: ["session=secret"], body: Buffer.from('{"charge":1}') };
const KEY = '"order-1"';

/** A refusal as its protocol's source has it: the status, and a part of the body. */
interface Refusal {
  readonly status: number;
  readonly body: object;
}

interface Expected {
  /** Undefined if a request without a key runs unguarded. */
  readonly missing: Refusal | undefined;
  readonly otherBody: Refusal;
  readonly inFlight: Refusal;
  /** Undefined if the same key at another path of the route begins an operation of its own. */
  readonly otherPath: Refusal | undefined;
  /** The header that marks a replay. */
  readonly replayed: string | undefined;
  readonly echoes: boolean;
  /** Whether the key without its quotes is another key, or refused. */
  readonly bareKey: "same" | "other" | "malformed";
}

const problem = (status: number, type: string): Refusal => ({
  status,
  body: { type: `urn:onceward:problem:${type}`, status },
});
const acp = (status: number, code: string): Refusal => ({ status, body: { type: "invalid_request", code } });

const ONCEWARD: Expected = {
  missing: problem(400, "key-missing"),
  otherBody: problem(422, "key-reused"),
  inFlight: problem(409, "in-progress"),
  otherPath: problem(422, "key-reused"),
  replayed: "idempotency-replayed",
  echoes: false,
  bareKey: "same",
};

/** Written from the sources of the guide, not from the code. */
const EXPECTED: Readonly<Record<HttpProfile, Expected>> = {
  onceward: ONCEWARD,
  ietf: { ...ONCEWARD, replayed: undefined, bareKey: "malformed" },
  stripe: {
    missing: undefined,
    otherBody: { status: 400, body: { error: { type: "idempotency_error" } } },
    inFlight: { status: 409, body: { error: { code: "idempotency_key_in_use" } } },
    otherPath: { status: 400, body: { error: { type: "idempotency_error" } } },
    replayed: "idempotent-replayed",
    echoes: false,
    bareKey: "other",
  },
  acp: {
    missing: acp(400, "idempotency_key_required"),
    otherBody: acp(422, "idempotency_conflict"),
    inFlight: acp(409, "idempotency_in_flight"),
    otherPath: undefined,
    replayed: "idempotent-replayed",
    echoes: true,
    bareKey: "other",
  },
  ucp: {
    missing: undefined,
    otherBody: { status: 409, body: { code: "idempotency_key_reused", content: expect.any(String) } },
    inFlight: { status: 409, body: { code: "idempotency_in_progress", content: expect.any(String) } },
    otherPath: { status: 409, body: { code: "idempotency_key_reused" } },
    replayed: undefined,
    echoes: false,
    bareKey: "other",
  },
};
const MARKERS = ["idempotency-replayed", "idempotent-replayed"];

/** Tests every profile of the wire over one framework. */
export function speaksProfiles(begin: Begin, framework: { readonly routes: boolean }): void {
  test.each(Object.entries(EXPECTED))("%s: statuses, bodies, marks and echoes", async (name, expected) => {
    const profile = name as HttpProfile;
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Reply>();
    const effect = vi
      .fn<Effect>(() => charged)
      .mockReturnValueOnce({ status: 503, headers: { "retry-after": "1" } })
      .mockImplementationOnce(() => {
        started.resolve();
        return answer.promise;
      });
    const documentation = "https://api.example/keys";
    // No option makes the profile of ACP store a 5xx.
    const options = { profile, documentation, ...(profile === "acp" && { stores: () => true }) };
    const world = await begin(effect, { options });
    const send = async (request: Parameters<typeof world.send>[0] = {}) => {
      const got = await world.send({ key: KEY, ...request });
      const sent = request.key === undefined ? KEY : request.key;
      expect(got.headers["idempotency-key"]).toBe(expected.echoes && sent !== null ? sent : undefined);
      return got;
    };

    expect((await send()).status).toBe(503);
    const first = send();
    await started.promise;
    const inFlight = await send();
    expectRefusal(inFlight, expected.inFlight);
    expect(Number(inFlight.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(inFlight.headers.link).toBe(
      `<urn:onceward:problem:in-progress>; rel="type", <${documentation}>; rel="describedby"`,
    );
    answer.resolve(charged);

    const marks = (got: HttpAnswer) => MARKERS.filter((marker) => got.headers[marker] === "true");
    expect(await first).toMatchObject({ status: 201, body: charged.body });
    expect(marks(await first)).toEqual([]);
    const replay = await send();
    expect(replay).toMatchObject({ status: 201, body: charged.body });
    expect(marks(replay)).toEqual(expected.replayed === undefined ? [] : [expected.replayed]);
    expect(replay.headers).not.toHaveProperty("set-cookie");
    expectRefusal(await send({ body: '{"amount":200}' }), expected.otherBody);
    expect(effect).toHaveBeenCalledTimes(2);

    const isRefused = expected.otherPath !== undefined && (framework.routes || profile === "stripe");
    const otherPath = await send({ path: "/charges/2" });
    if (isRefused) expectRefusal(otherPath, expected.otherPath);
    else expect(marks(otherPath)).toEqual([]);
    const foreign = await send({ headers: { "x-account": "a-2" } });
    expect([foreign.status, marks(foreign)]).toEqual([201, []]);
    expect(effect).toHaveBeenCalledTimes(isRefused ? 3 : 4);
  });

  test.each(Object.entries(EXPECTED))("%s: keys and fingerprints", async (name, expected) => {
    const effect = vi.fn<Effect>(() => charged);
    const world = await begin(effect, { options: { profile: name as HttpProfile } });
    const missing = await world.send({ key: null });
    if (expected.missing === undefined) expect(missing.status).toBe(201);
    else expectRefusal(missing, expected.missing);
    const before = effect.mock.calls.length;
    expect(before).toBe(expected.missing === undefined ? 1 : 0);

    await world.send({ key: KEY, body: '{"amount":1,"currency":"EUR"}' });
    const rewritten = await world.send({ key: KEY, body: '{"currency":"EUR", "amount":1.0}' });
    expect(rewritten.status).toBe(201);
    const bare = await world.send({ key: KEY.replaceAll('"', ""), body: '{"amount":1,"currency":"EUR"}' });
    expect(bare.status).toBe(expected.bareKey === "malformed" ? 400 : 201);
    expect(effect).toHaveBeenCalledTimes(before + (expected.bareKey === "other" ? 2 : 1));
    expect((await world.send({ key: "k".repeat(256) })).status).toBe(400);
  });
}

function expectRefusal({ status, body }: HttpAnswer, expected: Refusal): void {
  expect([status, JSON.parse(body.toString())]).toMatchObject([expected.status, expected.body]);
}
