import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { Controller, Inject, Module, Post, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import type { Claim } from "@onceward/client";
import { CurrentClaim, Idempotent, Onceward, OncewardModule } from "@onceward/client/nestjs";
import { createTestingOnceward } from "@onceward/client/testing";

/** The methods that the responses of both platforms have. */
interface AnyReply {
  status(code: number): unknown;
}

/** Starts an application with decorators, compiled as Nest's own starter project is. Its first response is a 500. */
async function startOn(adapter: ExpressAdapter | FastifyAdapter, client: Onceward) {
  let ran = 0;

  @Controller("charges")
  class ChargesController {
    constructor(@Inject(Onceward) readonly onceward: Onceward) {}

    @Post()
    @Idempotent({ namespace: "charges" })
    async charge(@Res({ passthrough: true }) reply: AnyReply, @CurrentClaim() claim: Claim | undefined) {
      if (this.onceward !== client || claim === undefined) throw new Error("the handler is not guarded");
      reply.status(++ran === 1 ? 500 : 201);
      return `charge ${ran}`;
    }
  }

  const http = {
    caller: (request: { headers: Record<string, unknown> }) => String(request.headers["x-caller"]),
  };

  @Module({
    imports: [OncewardModule.forRootAsync({ useFactory: async () => ({ client, http }) })],
    controllers: [ChargesController],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, adapter, { logger: false, abortOnError: false });
  await app.listen(0, "127.0.0.1");
  return app;
}

for (const [platform, newAdapter] of Object.entries({
  Express: () => new ExpressAdapter(),
  Fastify: () => new FastifyAdapter(),
})) {
  test(`a decorated route on ${platform} is guarded`, async () => {
    await using world = createTestingOnceward();
    const app = await startOn(newAdapter(), world.onceward);
    const url = `${await app.getUrl()}/charges`;
    const send = async (headers: Record<string, string>, body = '{"cents":100}') => {
      const all = { "content-type": "application/json", "x-caller": "ada", ...headers };
      const response = await fetch(url, { method: "POST", headers: all, body });
      return [response.status, response.headers.get("idempotency-replayed"), await response.text()];
    };
    try {
      const key = { "idempotency-key": '"order-1"' };
      deepEqual((await send({}))[0], 400);
      deepEqual(await send(key), [500, null, "charge 1"]);
      deepEqual(await send(key), [201, null, "charge 2"]);
      deepEqual(await send(key), [201, "true", "charge 2"]);
      deepEqual((await send(key, '{"cents":200}'))[0], 422);
    } finally {
      await app.close();
    }
  });
}
