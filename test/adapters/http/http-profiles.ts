import { expect, test, vi } from "vitest";
import PROFILES from "../../../clients/conformance/http-profiles.json" with { type: "json" };
import type { HttpProfile } from "../../../clients/typescript/src/http.ts";
import type { HttpAnswer } from "./http-client.ts";
import type { Begin, Effect, Reply } from "./http-world.ts";

const charged = { status: 201, cookies: ["session=secret"], body: Buffer.from('{"charge":1}') };
const KEY = '"order-1"';

/** Statuses, bodies and marks of each profile, written from the sources of the guide, for the guards of every language. */
const EXPECTED = Object.entries(PROFILES);
const MARKERS = ["idempotency-replayed", "idempotent-replayed"];

/** Tests every profile of the wire over one framework. */
export function speaksProfiles(begin: Begin, framework: { readonly routes: boolean }): void {
  test.each(EXPECTED)("%s: statuses, bodies, marks and echoes", async (name, expected) => {
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
    expect(marks(replay)).toEqual(expected.replayed === null ? [] : [expected.replayed]);
    expect(replay.headers).not.toHaveProperty("set-cookie");
    expectRefusal(await send({ body: '{"amount":200}' }), expected.otherBody);
    expect(effect).toHaveBeenCalledTimes(2);

    const isRefused = expected.scope === "all endpoints" || (framework.routes && expected.scope === "route");
    const otherPath = await send({ path: "/charges/2" });
    if (isRefused) expectRefusal(otherPath, expected.otherBody);
    else expect(marks(otherPath)).toEqual([]);
    const foreign = await send({ headers: { "x-account": "a-2" } });
    expect([foreign.status, marks(foreign)]).toEqual([201, []]);
    expect(effect).toHaveBeenCalledTimes(isRefused ? 3 : 4);
  });

  test.each(EXPECTED)("%s: keys and fingerprints", async (name, expected) => {
    const effect = vi.fn<Effect>(() => charged);
    const world = await begin(effect, { options: { profile: name as HttpProfile } });
    const missing = await world.send({ key: null });
    if (expected.missing === null) expect(missing.status).toBe(201);
    else expectRefusal(missing, expected.missing);
    const before = effect.mock.calls.length;
    expect(before).toBe(expected.missing === null ? 1 : 0);

    await world.send({ key: KEY, body: '{"amount":1,"currency":"EUR"}' });
    const rewritten = await world.send({ key: KEY, body: '{"currency":"EUR", "amount":1.0}' });
    expect(rewritten.status).toBe(201);
    const bare = await world.send({ key: KEY.replaceAll('"', ""), body: '{"amount":1,"currency":"EUR"}' });
    expect(bare.status).toBe(expected.bareKey === "malformed" ? 400 : 201);
    expect(effect).toHaveBeenCalledTimes(before + (expected.bareKey === "other" ? 2 : 1));
    expect((await world.send({ key: "k".repeat(256) })).status).toBe(400);
  });
}

function expectRefusal({ status, body }: HttpAnswer, expected: { status: number; body: object }): void {
  const answer = JSON.parse(body.toString());
  expect([status, answer]).toMatchObject([expected.status, expected.body]);
  const { detail, message, content } = answer.error ?? answer;
  // A sentence for people.
  expect(detail ?? message ?? content).toEqual(expect.any(String));
}
