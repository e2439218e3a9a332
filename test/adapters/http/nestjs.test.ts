import { Readable } from "node:stream";
import {
  All,
  type CallHandler,
  type ExecutionContext,
  Header,
  HttpException,
  Inject,
  type NestInterceptor,
  ParseIntPipe,
  Post,
  Query,
  Res,
  StreamableFile,
  UseInterceptors,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { Claim, Onceward } from "@onceward/client";
import { from, map, switchMap } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  CurrentClaim,
  Idempotent,
  Onceward as OncewardClient,
  OncewardModule,
} from "../../../clients/typescript/src/nestjs.ts";
import { createTestingOnceward } from "../../../clients/typescript/src/testing.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { Begin, CommonOptions, Effect, Reply, StartApp } from "./http-world.ts";
import { listen } from "./listen.ts";
import { callerOf, createNestApp, type NestRoute, type Platform } from "./nest-routes.ts";

/** The methods that the responses of both platforms have. */
interface AnyReply {
  status(code: number): unknown;
  header(name: string, value: string | string[]): unknown;
  send(body?: unknown): unknown;
  setHeader?(name: string, value: string[]): unknown;
}

function send(reply: AnyReply, { status, headers = {}, cookies = [], body }: Reply): void {
  reply.status(status);
  for (const [name, value] of Object.entries(headers)) reply.header(name, value);
  if (cookies.length > 0) reply.header("set-cookie", [...cookies]);
  reply.send(body === undefined ? undefined : Buffer.from(body));
}

/** Returns the routes that every adapter's tests call, and those of Nest's own ways to answer. */
function routesOf(options: CommonOptions, effect: Effect): Readonly<Record<string, NestRoute>> {
  const once = Idempotent(options);
  const answers: Pick<NestRoute, "params" | "handle"> = {
    params: [CurrentClaim(), Res()],
    handle: async (claim: Claim | undefined, reply: AnyReply) => send(reply, await effect(claim)),
  };
  // Nest runs the interceptors of the decorator that is written last first.
  const post = (path: string, handle: () => unknown, ...decorators: MethodDecorator[]): NestRoute => ({
    decorators: [Post(path), once, ...decorators],
    handle: async () => {
      await effect(undefined);
      return handle();
    },
  });
  return {
    charge: { decorators: [All("charges/:id"), once], ...answers },
    refund: { decorators: [All("refunds/:id"), once], ...answers },
    twice: { decorators: [Post("twice"), once, Idempotent(options)], ...answers },
    object: post("object", () => ({ charge: "ch_1" })),
    nothing: post("nothing", () => undefined),
    stream: post("stream", () => new StreamableFile(Readable.from(["one", "two"]), { type: "text/plain" })),
    mapped: post("mapped", () => "ch_1", UseInterceptors(Wraps)),
    declines: post("declines", () => {
      throw new HttpException("card declined", 402);
    }),
    pipe: { ...post("pipe", () => "charged"), params: [Query("amount", ParseIntPipe)] },
  };
}

/** Wraps the values of handlers after a turn of the event loop, as interceptors that ask another service do. */
class Wraps implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    const soon = () => new Promise((resolve) => setImmediate(resolve));
    return next.handle().pipe(
      switchMap((value) => from(soon()).pipe(map(() => value))),
      map((charge) => ({ charge })),
    );
  }
}

/** Answers with an error unless the handler returned a value. */
class Checks implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(
      map((value) => {
        if (value === undefined) throw new HttpException("no value", 501);
        return value;
      }),
    );
  }
}

const startOn =
  (platform: Platform): StartApp =>
  async (onceward, options, effect) => {
    const app = await createNestApp(platform, onceward, routesOf(options, effect));
    await app.listen(0, "127.0.0.1");
    return { ...(await listen(app.getHttpServer())), close: () => app.close() };
  };

function onlyNest(begin: Begin): void {
  test.each([
    ["an object", "/object", 201, '{"charge":"ch_1"}'],
    ["nothing", "/nothing", 201, ""],
    ["a stream", "/stream", 201, "onetwo"],
    ["mapped by an interceptor before it", "/mapped", 201, '{"charge":"ch_1"}'],
    ["an exception", "/declines", 402, '{"statusCode":402,"message":"card declined"}'],
    ["a refusal of a pipe", "/pipe?amount=x", 400, expect.stringContaining("numeric string")],
  ])("an answer that is %s is replayed byte for byte", async (_, path, status, body) => {
    const effect = vi.fn(() => ({ status: 200 }));
    const world = await begin(effect);
    const first = await world.send({ path });
    const repeat = await world.send({ path });
    for (const answer of [first, repeat]) {
      expect([answer.status, answer.body.toString()]).toEqual([status, body]);
      expect(answer.headers["content-type"]).toBe(first.headers["content-type"]);
    }
    expect(repeat.headers["idempotency-replayed"]).toBe("true");
    expect(effect).toHaveBeenCalledTimes(status === 400 ? 0 : 1);
  });
}

for (const platform of ["Express", "Fastify"] as const) {
  describeHttpAdapter(`NestJS on ${platform}`, startOn(platform), { routes: true }, onlyNest);
}

test("the module creates its client from asynchronous options, and closes it after the shutdown", async () => {
  class Charges {
    readonly onceward: Onceward;

    constructor(onceward: Onceward) {
      this.onceward = onceward;
    }
  }
  Inject(OncewardClient)(Charges, undefined, 0);
  const settings = { provide: "settings", useValue: { address: "http://127.0.0.1:9", apiKey: "k" } };
  class SettingsModule {}
  const imports = [{ module: SettingsModule, providers: [settings], exports: ["settings"] }];
  class AppModule {}
  const onceward = OncewardModule.forRootAsync({
    imports,
    inject: ["settings"],
    useFactory: async (client: typeof settings.useValue) => ({ client }),
  });
  const root = { module: AppModule, imports: [onceward], providers: [Charges] };
  const app = await NestFactory.createApplicationContext(root, {
    logger: false,
    abortOnError: false,
  });
  const client = app.get(Charges).onceward;
  expect(client).toBeInstanceOf(OncewardClient);
  await app.close();
  await expect(client.run({ namespace: "charges", key: "k" }, () => "ran")).rejects.toMatchObject({
    reason: "CLOSED",
  });
});

describe.each(["Express", "Fastify"] as const)("on %s, with a service in memory", (platform) => {
  async function begin(route: Partial<NestRoute>, options: CommonOptions, http?: object) {
    const testing = createTestingOnceward();
    onTestFinished(() => testing[Symbol.asyncDispose]());
    const decorators = [Post("charges"), Idempotent(options), ...(route.decorators ?? [])];
    const app = await createNestApp(
      platform,
      testing.onceward,
      { charge: { handle: () => "charged", ...route, decorators } },
      http,
    );
    onTestFinished(() => app.close());
    return { app, testing };
  }

  test("an option that is missing, or invalid, fails the start", async () => {
    await expect(begin({}, { namespace: "charges" }, {})).rejects.toThrow("caller must be a function");
    const misspelt = { namespace: "charges", methods: ["PSOT"] };
    await expect(begin({}, misspelt)).rejects.toMatchObject({ name: "InvalidRequestError" });
    const options = { namespace: "charges", abandonAfterMs: -1 };
    await expect(begin({}, options)).rejects.toThrow("abandonAfterMs");
  });

  test("a route's option replaces the module's", async () => {
    const required = { caller: callerOf, required: false };
    const { app } = await begin({}, { namespace: "charges", required: true }, required);
    await app.listen(0, "127.0.0.1");
    expect((await fetch(`${await app.getUrl()}/charges`, { method: "POST" })).status).toBe(400);
  });

  test("a refusal is sent as it is, with headers of the route, and logs see its status", async () => {
    const seen = Promise.withResolvers<number>();
    const { app } = await begin(
      { decorators: [UseInterceptors(Checks), Header("x-request-id", "r-1")] },
      { namespace: "charges" },
    );
    app.getHttpServer().on("request", (_: unknown, response: Watched) => {
      response.on("finish", () => setImmediate(() => seen.resolve(response.statusCode)));
    });
    await app.listen(0, "127.0.0.1");
    const answer = await fetch(`${await app.getUrl()}/charges`, { method: "POST" });
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(answer.headers.get("x-request-id")).toBe("r-1");
    expect(await seen.promise).toBe(400);
  });
});

interface Watched {
  readonly statusCode: number;
  on(event: "finish", listener: () => void): unknown;
}
