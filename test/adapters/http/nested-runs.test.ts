import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { type Claim, createOnceward, type Onceward, TerminalError } from "@onceward/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import * as connect from "../../../clients/typescript/src/connect.ts";
import { idempotent } from "../../../clients/typescript/src/http.ts";
import { NESTED_FAILURES } from "../../support/calls/nested-runs.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { Charges } from "../rpc/test-service.ts";

const { database, server } = useServer();

async function newOnceward(): Promise<Onceward> {
  const { apiKey } = await createTenant(database);
  const onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
  onTestFinished(() => onceward.close());
  return onceward;
}

type Effect = (claim: Claim | undefined) => Promise<unknown>;
/** Makes a call with the same key each time, and resolves to "answered" or to its kind of failure. */
type Call = () => Promise<unknown>;

const common = { namespace: "charges", caller: () => "a-1" };

async function beginFetch(onceward: Onceward, effect: Effect): Promise<Call> {
  const handler = idempotent(onceward, common, async (_, claim) => {
    await effect(claim);
    return new Response(null, { status: 204 });
  });
  return async () => {
    const headers = { "idempotency-key": '"order-1"' };
    const answer = handler(new Request("http://localhost/charges", { method: "POST", headers }));
    return await answer.then(
      ({ status }) => (status === 204 ? "answered" : status),
      () => "failed",
    );
  };
}

async function beginConnect(onceward: Onceward, effect: Effect): Promise<Call> {
  const implementation = connect.idempotentUnary(
    onceward,
    Charges.method.create,
    common,
    async (_request, _context, claim) => {
      await effect(claim);
      return {};
    },
  );
  const client = createClient(
    Charges,
    createRouterTransport((router) => void router.service(Charges, { create: implementation })),
  );
  return async () => {
    const call = client.create({}, { headers: { "idempotency-key": '"order-1"' } });
    return await call.then(
      () => "answered",
      (error) => failureOf(ConnectError.from(error).code),
    );
  };
}

/**
 * Returns "failed" for a failure of the server, which says nothing about the call, and else the code's name.
 */
function failureOf(code: number): string {
  return code === Code.Internal || code === Code.Unknown ? "failed" : (Code[code] ?? `${code}`);
}

describe.each([
  ["a fetch handler", beginFetch],
  ["a Connect method", beginConnect],
])("%s", (_, begin) => {
  test.each(NESTED_FAILURES)(
    "with a nested run $name, which throws its $error, fails, and runs again",
    async ({ fail }) => {
      const onceward = await newOnceward();
      const effect = vi.fn<Effect>(async () => {});
      effect.mockImplementationOnce(() => fail(onceward));
      const call = await begin(onceward, effect);
      expect(await call()).toBe("failed");
      expect(await call()).toBe("answered");
      expect(effect.mock.calls.map(([claim]) => claim?.attempt)).toEqual([1, 2]);
    },
  );

  test("with a nested run that failed permanently fails, and runs again", async () => {
    const onceward = await newOnceward();
    const effect = vi.fn<Effect>(async () => {});
    effect.mockImplementationOnce(() =>
      onceward.run({ namespace: "nested", key: "charge-1" }, () => {
        throw new TerminalError("card declined");
      }),
    );
    const call = await begin(onceward, effect);
    expect(await call()).toBe("failed");
    expect(await call()).toBe("answered");
    expect(effect).toHaveBeenCalledTimes(2);
  });
});
