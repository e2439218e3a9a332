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
 */
export class HiddenDisconnect {
  /** Aborts when the client disconnects. */
  readonly disconnected: AbortSignal;
  readonly #disconnect = new AbortController();
  readonly #socket: MaybeSocket;
  readonly #response: ServerResponse;
  readonly #emit: ServerResponse["emit"];
  readonly #ofRequest: PropertyOverrides;
  readonly #ofResponse: PropertyOverrides;
  /** Events of the connection, for listeners that are added while it is hidden. */
  readonly #connectionEvents = new EventEmitter();
  #hidden = true;
  readonly #waitsForConnection: boolean;
  /** The connection that http assigns to the response later: with pipelining, once the earlier responses are sent. */
  #assigned: { readonly socket: Socket | null } | undefined;

  /** @param onDestroy called when the handler destroys the connection. */
  constructor(request: IncomingMessage, response: ServerResponse, onDestroy: () => void) {
    this.disconnected = this.#disconnect.signal;
    this.#socket = request.socket;
    this.#response = response;
    this.#emit = response.emit;
    this.#ofRequest = new PropertyOverrides(request);
    this.#ofResponse = new PropertyOverrides(response);
    this.#waitsForConnection = response.socket === null;
    this.#replaceConnection(onDestroy);
    this.#replaceEvents();
    this.#socket?.once?.("close", this.#leave);
    if (this.#socket?.destroyed === true || response.destroyed) this.#leave();
  }

  /** Whether the response waits for its connection, which sends earlier responses first. */
  get isQueued(): boolean {
    return this.#waitsForConnection && this.#assigned === undefined;
  }

  /** Restores the request and the response. Listeners for the end of the response are called by `tell`. */
  end(): void {
    this.#hidden = false;
    this.#ofRequest.undo();
    this.#ofResponse.undo();
    this.#socket?.off?.("close", this.#leave);
    if (this.#assigned !== undefined) Reflect.set(this.#response, "socket", this.#assigned.socket);
    this.#response.once("close", () => this.#connectionEvents.emit("close"));
  }

  /**
   * Emits the disconnect that was hidden, if there was one. @param finished whether the response is written to its
   * end.
   */
  tell(finished: boolean): void {
    if (!this.disconnected.aborted) return;
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

  #replaceConnection(onDestroy: () => void): void {
    const socket = this.#socket as Socket | null | undefined;
    if (socket === null || socket === undefined) return;
    const isHeld = () => this.#hidden;
    const ofRequest = viewConnection(socket, {
      isHeld,
      events: socket,
      onDestroy: (error) => {
        if (this.#hidden && !isAbort(error)) onDestroy();
      },
    });
    const ofResponse = viewConnection(socket, {
      isHeld,
      events: this.#connectionEvents,
      onDestroy: () => {
        if (this.#hidden) onDestroy();
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
