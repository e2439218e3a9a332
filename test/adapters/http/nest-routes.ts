import { Controller, type INestApplication, type Type } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import type { Onceward } from "@onceward/client";
import type { HttpOptions } from "../../../clients/typescript/src/http.ts";
import { OncewardModule } from "../../../clients/typescript/src/nestjs.ts";

/** A framework beneath Nest. */
export type Platform = "Express" | "Fastify";

/** A route of a controller: a handler, and the decorators that a program in TypeScript writes above it. */
export interface NestRoute {
  readonly decorators: readonly MethodDecorator[];
  /** The decorators of the handler's parameters, in their order. */
  readonly params?: readonly ParameterDecorator[];
  // Nest calls a handler with what the decorators of its parameters return.
  readonly handle: (...args: never[]) => unknown;
}

/** Returns a controller with these routes, as the compiler makes one of decorators, which Node can't run. */
function controllerOf(routes: Readonly<Record<string, NestRoute>>): Type<unknown> {
  class TestController {}
  const { prototype } = TestController;
  for (const [name, { decorators, params = [], handle }] of Object.entries(routes)) {
    // Each controller has its own function, because decorators write their metadata on it.
    Object.defineProperty(prototype, name, {
      value: (...args: never[]) => handle(...args),
      configurable: true,
      writable: true,
    });
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name) ?? {};
    for (const [index, decorate] of params.entries()) decorate(prototype, name, index);
    for (const decorate of [...decorators].reverse()) decorate(prototype, name, descriptor);
  }
  Controller()(TestController);
  return TestController;
}

/** Returns the header x-account, by default "a-1". */
export const callerOf = (request: { readonly headers: Readonly<Record<string, unknown>> }) =>
  String(request.headers["x-account"] ?? "a-1");

/** Creates an application whose routes are guarded by a client. */
export async function createNestApp(
  platform: Platform,
  client: Onceward,
  routes: Readonly<Record<string, NestRoute>>,
  http: Partial<HttpOptions<{ headers: Record<string, unknown> }>> = { caller: callerOf },
): Promise<INestApplication> {
  class AppModule {}
  const root = {
    module: AppModule,
    imports: [OncewardModule.forRoot({ client, http })],
    controllers: [controllerOf(routes)],
  };
  const adapter = platform === "Express" ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(root, adapter as ExpressAdapter, {
    logger: false,
    abortOnError: false,
  });
  if (platform === "Express") (app as unknown as { useBodyParser(type: "text"): void }).useBodyParser("text");
  await app.init();
  await (app.getHttpAdapter().getInstance() as { ready?(): Promise<unknown> }).ready?.();
  return app;
}
