import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** An effect, with what its holder passed to the system that has it. */
export interface Effect {
  readonly key: string;
  readonly derivedKey: string;
  readonly attempt: number;
  readonly fencingToken: number;
  /** Unique. */
  readonly number: number;
  /** When it happened, by `performance.now()`. */
  readonly atMs: number;
}

/** The system in which effects happen: it has each effect that a worker asks for, and counts. */
export class Effects implements AsyncDisposable {
  readonly #all: Effect[] = [];
  readonly #server = createServer(async (request, response) => {
    const asked = JSON.parse(await textOf(request));
    const effect: Effect = { ...asked, number: this.#all.length + 1, atMs: performance.now() };
    this.#all.push(effect);
    const answerAfterMs = this.#onEffect.get(effect.key)?.() ?? 0;
    if (answerAfterMs > 0) await sleep(answerAfterMs);
    response.end(`${effect.number}`);
  });
  readonly #onEffect = new Map<string, () => number>();

  /** Starts to listen on loopback. Returns the URL. */
  async listen(): Promise<string> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** Calls back at a key's first effect, and answers it so much later. */
  onFirst(key: string, answerAfterMs: number, callback: () => void): void {
    this.#onEffect.set(key, () => {
      this.#onEffect.delete(key);
      callback();
      return answerAfterMs;
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
