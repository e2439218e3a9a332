import { EventEmitter } from "node:events";
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { viewConnection } from "./connection-view.ts";
import { PropertyOverrides } from "./property-overrides.ts";

/** A request's connection. Platforms without connections, such as serverless functions, provide other objects. */
type MaybeSocket = Partial<Socket> | null | undefined;

/**
 * Hides from a handler that its client has disconnected, until `end` is called: the response isn't closed or
 * destroyed, its connection looks open, and no events are emitted. So pipelines and files are written to their end.
 *
 * Also delays until `report` what the handler destroys, which looks destroyed at once: a client that sees its connection
 * close repeats its request, and the claim must be released before.
 */
export class HiddenDisconnect {
  /** Aborts when the client disconnects. */
  readonly disconnected: AbortSignal;
  readonly #disconnect = new AbortController();
  readonly #socket: MaybeSocket;
  readonly #response: ServerResponse;
  readonly #onDestroy: () => void;
  readonly #emit: ServerResponse["emit"];
  readonly #ofRequest: PropertyOverrides;
  readonly #ofResponse: PropertyOverrides;
  /** Events of the connection, for listeners that are added while it is hidden. */
  readonly #connectionEvents = new EventEmitter();
  #hidden = true;
  readonly #waitsForConnection: boolean;
  /** Destroys what the handler has destroyed. */
  #destroy: (() => void) | undefined;
  /** The connection that http assigns to the response later: with pipelining, once the earlier responses are sent. */
  #assigned: { readonly socket: Socket | null } | undefined;

  /** @param onDestroy called when the handler destroys the response or its connection. */
  constructor(request: IncomingMessage, response: ServerResponse, onDestroy: () => void) {
    this.disconnected = this.#disconnect.signal;
    this.#socket = request.socket;
    this.#response = response;
    this.#onDestroy = onDestroy;
    this.#emit = response.emit;
    this.#ofRequest = new PropertyOverrides(request);
    this.#ofResponse = new PropertyOverrides(response);
    this.#waitsForConnection = response.socket === null;
    this.#replaceConnection();
    this.#replaceEvents();
    this.#socket?.once?.("close", this.#leave);
    if (this.#socket?.destroyed === true || response.destroyed) this.#leave();
  }

  /** Whether the response waits for its connection, which sends earlier responses first. */
  get isQueued(): boolean {
    return this.#waitsForConnection && this.#assigned === undefined;
  }

  /** Whether the handler has destroyed the response or its connection. */
  get isDestroyed(): boolean {
    return this.#destroy !== undefined;
  }

  /** Delays what destroys the response or its connection. */
  delayDestroy(destroy: () => void): void {
    if (this.#destroy !== undefined) return;
    this.#destroy = destroy;
    // http sets the property, too, when the client disconnects.
    this.#ofResponse.define("destroyed", { get: () => true, set: () => {} });
    this.#onDestroy();
  }

  /** Drops what `delayDestroy` delays. */
  cancelDestroy(): void {
    this.#destroy = undefined;
  }

  /** Restores the request and the response. Listeners for the end of the response are called by `report`. */
  end(): void {
    this.#hidden = false;
    this.#ofRequest.undo();
    this.#ofResponse.undo();
    this.#socket?.off?.("close", this.#leave);
    if (this.#assigned !== undefined) Reflect.set(this.#response, "socket", this.#assigned.socket);
    this.#response.once("close", () => this.#connectionEvents.emit("close"));
  }

  /**
   * Emits the disconnect that was hidden, if there was one, and destroys what the handler has destroyed. @param finished
   * whether the response is written to its end.
   */
  report(finished: boolean): void {
    if (this.disconnected.aborted) this.#emitDisconnect(finished);
    this.#destroy?.();
  }

  #emitDisconnect(finished: boolean): void {
    const response = this.#response;
    if (!(response instanceof ServerResponse)) {
      if (finished) (response as ServerResponse).emit("finish");
      (response as ServerResponse).emit("close");
    } else if (finished && response.socket !== null) {
      // http closes the response after this event; it expects the connection to be the response's.
      response.emit("finish");
    } else {
      setClosed(response, true);
      response.emit("close");
    }
  }

  #replaceConnection(): void {
    const socket = this.#socket as Socket | null | undefined;
    if (socket === null || socket === undefined) return;
    const state = { isHeld: () => this.#hidden, isDestroyed: () => this.isDestroyed };
    const ofRequest = viewConnection(socket, {
      ...state,
      events: socket,
      onDestroy: (destroy, error) => {
        if (this.#hidden && !isAbort(error)) this.delayDestroy(destroy);
        else destroy();
      },
    });
    const ofResponse = viewConnection(socket, {
      ...state,
      events: this.#connectionEvents,
      onDestroy: (destroy) => {
        if (this.#hidden) this.delayDestroy(destroy);
        else destroy();
      },
    });
    this.#ofRequest.define("socket", { value: ofRequest, writable: true });
    this.#ofResponse.define("socket", {
      get: () => ofResponse,
      set: (assigned: Socket | null) => {
        this.#assigned = { socket: assigned };
      },
    });
  }

  #replaceEvents(): void {
    const response = this.#response;
    const isOwnEvent = (event: unknown) =>
      // An HTTP/2 response also emits "finish" when its client disconnects.
      event === "close" || (event === "finish" && !(response instanceof ServerResponse));
    this.#ofResponse.define("emit", {
      writable: true,
      value: (...args: Parameters<ServerResponse["emit"]>) => {
        if (!this.#hidden || !isOwnEvent(args[0])) return Reflect.apply(this.#emit, response, args);
        this.#leave();
        return false;
      },
    });
    // The package on-finished, with which Express sends files, adds its listeners to an object that it keeps here. If
    // middleware before the guard has created that object, it listens to the connection itself.
    this.#ofResponse.define("__onFinished", { value: undefined, writable: true });
  }

  readonly #leave = (): void => {
    if (this.#response instanceof ServerResponse) setClosed(this.#response, false);
    this.#disconnect.abort();
  };
}

/** Returns whether http itself destroyed the request or response because the client disconnected. */
export function isAbort(error: unknown): boolean {
  return (
    error instanceof Error && error.message === "aborted" && "code" in error && error.code === "ECONNRESET"
  );
}

/** Sets the properties that http sets when a response's connection closes. */
function setClosed(response: ServerResponse, closed: boolean): void {
  Object.assign(response, { destroyed: closed, _closed: closed });
}
