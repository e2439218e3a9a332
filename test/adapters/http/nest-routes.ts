import { Controller, type Type } from "@nestjs/common";

/** A route of a controller: a handler, and the decorators that a program in TypeScript writes above it. */
export interface NestRoute {
  readonly decorators: readonly MethodDecorator[];
  /** The decorators of the handler's parameters, in their order. */
  readonly params?: readonly ParameterDecorator[];
  // Nest calls a handler with what the decorators of its parameters return.
  readonly handle: (...args: never[]) => unknown;
}

/** Returns a controller with these routes, as the compiler makes one of decorators, which Node can't run. */
export function controllerOf(routes: Readonly<Record<string, NestRoute>>): Type<unknown> {
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
