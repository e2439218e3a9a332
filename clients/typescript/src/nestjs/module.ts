import {
  type DynamicModule,
  type FactoryProvider,
  Module,
  type ModuleMetadata,
  type OnApplicationShutdown,
} from "@nestjs/common";
import type { HttpOptions } from "../http/options.ts";
import { Onceward } from "../run/client.ts";
import { createOnceward, type OncewardOptions } from "../run/onceward.ts";
import type { NestRequest } from "./platform.ts";

/** The options of `OncewardModule`. */
export interface OncewardModuleOptions<Request = NestRequest> {
  /**
   * The options of `createOnceward`: the module creates a client when the application starts, and closes it after the
   * application's shutdown. Or a client that you created, and close yourself.
   */
  readonly client: OncewardOptions | Onceward;
  /**
   * Options for every `@Idempotent` of the application, such as `caller`. A route's own options replace them.
   * Default: none.
   */
  readonly http?: Partial<HttpOptions<Request>>;
}

/** The options of `OncewardModule`, from a function of other providers, such as Nest's `ConfigService`. */
export interface OncewardModuleAsyncOptions<Request = NestRequest>
  extends Pick<FactoryProvider<OncewardModuleOptions<Request>>, "inject" | "useFactory">,
    Pick<ModuleMetadata, "imports"> {}

const OPTIONS = Symbol("options of OncewardModule");

/** The token of the module's options for all routes. */
export const HTTP_DEFAULTS = Symbol("http options of OncewardModule");

/**
 * Provides the client to the whole application, under the class `Onceward` of `@onceward/client/nestjs`, and to
 * `@Idempotent`.
 *
 * ```ts
 * @Module({
 *   imports: [
 *     OncewardModule.forRoot({
 *       client: { address: "http://localhost:50051", apiKey: process.env.ONCEWARD_API_KEY },
 *       http: { caller: (request: Request) => request.user.id },
 *     }),
 *   ],
 *   controllers: [ChargesController],
 * })
 * export class AppModule {}
 *
 * @Injectable()
 * export class Refunds {
 *   constructor(@Inject(Onceward) private readonly onceward: Onceward) {}
 * }
 * ```
 *
 * In a test, `overrideProvider(Onceward).useValue(testing.onceward)` replaces it by the client of
 * `@onceward/client/testing`.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest's modules are classes.
export class OncewardModule {
  /** Returns the module for the application's root, with these options. */
  static forRoot<Request extends object = NestRequest>(
    options: OncewardModuleOptions<Request>,
  ): DynamicModule {
    return moduleOf({ provide: OPTIONS, useFactory: () => options });
  }

  /** Returns the module for the application's root, with options from other providers, now or later. */
  static forRootAsync<Request extends object = NestRequest>(
    options: OncewardModuleAsyncOptions<Request>,
  ): DynamicModule {
    const { imports = [], inject = [], useFactory } = options;
    return { ...moduleOf({ provide: OPTIONS, inject, useFactory }), imports };
  }
}

Module({})(OncewardModule);

/** Closes the client that the module has created, once the server has answered its last request. */
class ClientLifetime implements OnApplicationShutdown {
  #created: Onceward | undefined;

  open(client: OncewardOptions | Onceward): Onceward {
    if (isClient(client)) return client;
    this.#created = createOnceward(client);
    return this.#created;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#created?.close();
  }
}

function moduleOf<Request>(options: FactoryProvider<OncewardModuleOptions<Request>>): DynamicModule {
  return {
    module: OncewardModule,
    global: true,
    providers: [
      options,
      { provide: ClientLifetime, useFactory: () => new ClientLifetime() },
      {
        provide: Onceward,
        inject: [OPTIONS, ClientLifetime],
        useFactory: ({ client }: OncewardModuleOptions, lifetime: ClientLifetime) => lifetime.open(client),
      },
      {
        provide: HTTP_DEFAULTS,
        inject: [OPTIONS],
        useFactory: ({ http = {} }: OncewardModuleOptions) => http,
      },
    ],
    exports: [Onceward, HTTP_DEFAULTS],
  };
}

/** Returns whether it is a client; not by its class, because that of `@onceward/client/web` is another one. */
function isClient(client: OncewardOptions | Onceward): client is Onceward {
  return "runDetailed" in client;
}
