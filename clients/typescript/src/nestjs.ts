/**
 * `@onceward/client/nestjs`: the Idempotency-Key header as a decorator of NestJS 10 to 12, on Express and Fastify, and
 * the client as a provider.
 */

export type { HttpOptions } from "./http/options.ts";
export {
  CurrentClaim,
  IdempotencyInterceptor,
  Idempotent,
  type IdempotentOptions,
} from "./nestjs/interceptor.ts";
export {
  OncewardModule,
  type OncewardModuleAsyncOptions,
  type OncewardModuleOptions,
} from "./nestjs/module.ts";
export type { NestRequest } from "./nestjs/platform.ts";
export { Onceward } from "./run/client.ts";
