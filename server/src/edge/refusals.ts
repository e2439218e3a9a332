import type { Logger } from "pino";
import { CATALOGUE, Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import type { Denials } from "./denials.ts";
import type { Route } from "./route.ts";

export interface RefusalsOptions {
  readonly denials: Pick<Denials, "note">;
  readonly log: Logger;
}

/** What the errors of one call become, and who has to know of them. */
export class Refusals {
  readonly #options: RefusalsOptions;
  readonly #route: Route;
  readonly requestId: () => string;
  /** Undefined until it is known. */
  principal: Principal | undefined;
  constructor(options: RefusalsOptions, route: Route, requestId: () => string) {
    this.#options = options;
    this.#route = route;
    this.requestId = requestId;
  }

  /** What the caller is told. A bug is in the log under the request id, a denial in the audit. */
  of(error: unknown): Refusal {
    if (!(error instanceof Refusal)) return this.#bug(error);
    if (CATALOGUE[error.reason] === "PERMISSION_DENIED") this.#note(error);
    return error;
  }

  #note(refusal: Refusal): void {
    if (this.principal === undefined) return;
    this.#options.denials.note({
      principal: this.principal,
      action: this.#route.method.name,
      refusal,
      requestId: this.requestId(),
    });
  }

  #bug(error: unknown): Refusal {
    const requestId = this.requestId();
    this.#options.log.error({ err: error, requestId }, "a call failed by a defect");
    const metadata = { request_id: requestId };
    return new Refusal("INTERNAL", "An internal error; the server's log has it.", { metadata, cause: error });
  }
}
