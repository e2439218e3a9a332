import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** An effect, with what its holder passed to the system that has it. */
export interface Effect {
  readonly key: string;
  readonly derivedKey: string;
  readonly attempt: number;
  readonly fencingToken: number;
  /** Unique. */
  readonly number: number;
}

/** The system in which effects happen: it has each effect that a worker asks for, and counts. */
export class Effects implements AsyncDisposable {
  readonly #all: Effect[] = [];
  readonly #server = createServer(async (request, response) => {
    const asked = JSON.parse(await textOf(request));
    const effect: Effect = { ...asked, number: this.#all.length + 1 };
    this.#all.push(effect);
    this.#onEffect.get(effect.key)?.();
    response.end(`${effect.number}`);
  });
  readonly #onEffect = new Map<string, () => void>();

  /** Starts to listen on loopback. Returns the URL. */
  async listen(): Promise<string> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** Calls back at a key's first effect, before it is answered. */
  onFirst(key: string, callback: () => void): void {
    this.#onEffect.set(key, () => {
      this.#onEffect.delete(key);
      callback();
    });
  }

  /** Returns the effects of a key, in their order. */
  of(key: string): readonly Effect[] {
    return this.#all.filter((effect) => effect.key === key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}
