import type { Onceward } from "@onceward/client";
import type { HttpOptions } from "@onceward/client/http";
import type { TestingOnceward } from "@onceward/client/testing";
import { counter, equal, inWorld, type TestFunction } from "./suite.ts";

/** A response of the suite's handler. */
export interface SuiteResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A server whose one route, `POST /charges`, the adapter under test guards. */
export interface SuiteServer {
  /** Sends a request to the server. */
  fetch(request: Request): Promise<Response>;
  /** Stops the server. Default: there is nothing to stop. */
  close?(): Promise<unknown>;
}

/**
 * Makes a server by the adapter under test. The caller of a request is its header `x-caller`; the route answers with what
 * `handler` returns, and fails with what it throws.
 */
export type SuiteServerFactory = (
  onceward: Onceward,
  options: Pick<HttpOptions<never>, "namespace" | "timeoutMs">,
  handler: () => Promise<SuiteResponse>,
) => SuiteServer | Promise<SuiteServer>;

/**
 * Defines the tests that every adapter of HTTP servers must pass: `describeHttpAdapter(test, newServer)`, within a
 * `describe` of your own.
 */
export function describeHttpAdapter(test: TestFunction, newServer: SuiteServerFactory): void {
  const fact: Fact = (name, check) => test(name, () => inWorld(check, newServer));
  describeAnswers(fact);
  describeRuns(fact);
}

/** Defines one test, whose check starts servers with a handler. */
type Fact = (
  name: string,
  check: (
    world: TestingOnceward,
    start: (handler: () => Promise<SuiteResponse>) => Promise<SuiteServer>,
  ) => Promise<void>,
) => unknown;

function describeAnswers(fact: Fact): void {
  fact(
    "a repeat gets the first response, byte for byte and marked, and nothing runs again",
    async (_, start) => {
      const ran = counter((count) => created(`charge ${count} ä`));
      const server = await start(async () => ran.call());
      const answers = [await server.fetch(post()), await server.fetch(post())];
      equal(ran.count, 1);
      equal(await Promise.all(answers.map((answer) => answer.text())), ["charge 1 ä", "charge 1 ä"]);
      equal(
        answers.map(({ status }) => status),
        [201, 201],
      );
      equal(
        answers.map(({ headers }) => headers.get("location")),
        ["/charges/1", "/charges/1"],
      );
      equal(
        answers.map(({ headers }) => headers.get("idempotency-replayed")),
        [null, "true"],
      );
    },
  );

  fact("a missing and a malformed key are answered with 400, another body with 422", async (_, start) => {
    const ran = counter(() => created("charged"));
    const server = await start(async () => ran.call());
    equal((await server.fetch(post({ key: undefined }))).status, 400);
    equal((await server.fetch(post({ key: '"order' }))).status, 400);
    equal(ran.count, 0);
    equal((await server.fetch(post())).status, 201);
    equal((await server.fetch(post({ body: '{"cents":200}' }))).status, 422);
    equal(ran.count, 1);
  });

  fact("while a request is handled, another one with its key gets 409 with Retry-After", async (_, start) => {
    let answer: (response: SuiteResponse) => void = () => {};
    let called: () => void = () => {};
    const isCalled = new Promise<void>((resolve) => {
      called = resolve;
    });
    const server = await start(() => {
      called();
      return new Promise((resolve) => {
        answer = resolve;
      });
    });
    const first = server.fetch(post());
    await isCalled;
    const second = await server.fetch(post());
    equal([second.status, Number(second.headers.get("retry-after")) > 0], [409, true]);
    answer(created("charged"));
    equal((await first).status, 201);
  });
}

function describeRuns(fact: Fact): void {
  fact("a response of 500 is not stored: the next attempt runs", async (_, start) => {
    const ran = counter((count) =>
      count === 1 ? { ...created("the provider is down"), status: 500 } : created("charged"),
    );
    const server = await start(async () => ran.call());
    equal([(await server.fetch(post())).status, (await server.fetch(post())).status], [500, 201]);
    equal(ran.count, 2);
  });

  fact("two callers with one key are two operations", async (_, start) => {
    const ran = counter((count) => created(`charge ${count}`));
    const server = await start(async () => ran.call());
    const answers = [await server.fetch(post()), await server.fetch(post({ caller: "account-2" }))];
    equal(await Promise.all(answers.map((answer) => answer.text())), ["charge 1", "charge 2"]);
  });

  fact(
    "while the service is unreachable nothing runs, and the answer is 503 with Retry-After",
    async ({ faults }, start) => {
      const ran = counter(() => created("charged"));
      const server = await start(async () => ran.call());
      faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
      const answer = await server.fetch(post());
      equal([answer.status, answer.headers.has("retry-after"), ran.count], [503, true, 0]);
      faults.clear();
      equal((await server.fetch(post())).status, 201);
    },
  );
}

function created(body: string): SuiteResponse {
  return {
    status: 201,
    headers: { "content-type": "text/plain; charset=utf-8", location: "/charges/1" },
    body,
  };
}

interface PostOptions {
  /** Undefined: the request has no key. */
  readonly key?: string | undefined;
  readonly body?: string;
  readonly caller?: string;
}

function post(options: PostOptions = {}): Request {
  const { body = '{"cents":100}', caller = "account-1" } = options;
  const key = "key" in options ? options.key : '"order-1"';
  const headers = new Headers({ "content-type": "application/json", "x-caller": caller });
  if (key !== undefined) headers.set("idempotency-key", key);
  return new Request("http://127.0.0.1/charges", { method: "POST", headers, body });
}
