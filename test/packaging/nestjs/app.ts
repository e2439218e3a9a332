import { describe, test } from "node:test";
import { Controller, Inject, Module, Post, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import type { Claim } from "@onceward/client";
import { CurrentClaim, Idempotent, Onceward, OncewardModule } from "@onceward/client/nestjs";
import { describeHttpAdapter, type SuiteServerFactory } from "../../helpers/adapters/http-suite.ts";

/** The methods that the responses of both platforms have. */
interface AnyReply {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
}

/** An application with decorators, compiled as Nest's own starter project is. */
const startOn =
  (newAdapter: () => ExpressAdapter | FastifyAdapter): SuiteServerFactory =>
  async (client, options, handler) => {
    @Controller("charges")
    class ChargesController {
      constructor(@Inject(Onceward) readonly onceward: Onceward) {}

      @Post()
      @Idempotent(options)
      async charge(@Res({ passthrough: true }) reply: AnyReply, @CurrentClaim() claim: Claim | undefined) {
        if (this.onceward !== client || claim === undefined) throw new Error("the handler is not guarded");
        const { status, headers, body } = await handler();
        reply.status(status);
        for (const [name, value] of Object.entries(headers)) reply.header(name, value);
        return body;
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

    const app = await NestFactory.create(AppModule, newAdapter(), { logger: false, abortOnError: false });
    await app.listen(0, "127.0.0.1");
    const url = `${await app.getUrl()}/charges`;
    return {
      fetch: async ({ method, headers, body }) =>
        await fetch(url, { method, headers, body: body === null ? null : await new Response(body).text() }),
      close: () => app.close(),
    };
  };

describe("on Express", () =>
  describeHttpAdapter(
    test,
    startOn(() => new ExpressAdapter()),
  ));
describe("on Fastify", () =>
  describeHttpAdapter(
    test,
    startOn(() => new FastifyAdapter()),
  ));
