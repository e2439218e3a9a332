import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";

const LISTENER_METHODS: ReadonlySet<PropertyKey> = new Set([
  "addListener",
  "listenerCount",
  "listeners",
  "off",
  "on",
  "once",
  "prependListener",
  "prependOnceListener",
  "rawListeners",
  "removeAllListeners",
  "removeListener",
]);

const DESTROY_METHODS: ReadonlySet<PropertyKey> = new Set(["destroy", "destroySoon", "resetAndDestroy"]);

/** Options of the view of a connection that a handler sees while its response is held. */
export interface ConnectionViewOptions {
  /** Returns whether the response is still held. Afterwards the view behaves like the connection. */
  readonly isHeld: () => boolean;
  /** Returns whether the handler has destroyed the response or the connection while the response is held. */
  readonly isDestroyed: () => boolean;
  /** Called instead of destroying the connection, with the function that destroys it. */
  readonly onDestroy: (destroy: () => void, error: unknown) => void;
  /** Where listeners are added: the connection's own events, or others that hide the client's disconnect. */
  readonly events: EventEmitter;
}

/**
 * Returns a view of the connection that looks open while the response is held, also after the client has
 * disconnected, until the handler destroys it.
 */
export function viewConnection(socket: Socket, options: ConnectionViewOptions): Socket {
  const { isHeld, isDestroyed, onDestroy, events } = options;
  return new Proxy(socket, {
    get(target, name) {
      if (isHeld() && name === "destroyed") return isDestroyed();
      if (isHeld() && name === "writable") return !isDestroyed();
      const owner = LISTENER_METHODS.has(name) ? events : target;
      const value: unknown = Reflect.get(owner, name, owner);
      if (typeof value !== "function") return value;
      if (!DESTROY_METHODS.has(name)) return value.bind(owner);
      return (error: unknown) => {
        onDestroy(() => value.call(owner, error), error);
        return target;
      };
    },
    set: (target, name, value) => Reflect.set(target, name, value),
  });
}
