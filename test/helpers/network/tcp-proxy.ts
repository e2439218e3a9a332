import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createPacedPipe, type Pace } from "./paced-pipe.ts";

/**
 * What happens to what goes through a proxy.
 *
 * - `forward`: everything passes.
 * - `lose-replies`: requests pass; the first bytes that come back cut the connection instead.
 * - `swallow`: bytes of either direction vanish, and connections stay open: a network that went dead.
 * - `refuse`: connections are cut, new ones at once.
 * - `hold`: requests wait, and go on once the mode is another one.
 * - `drop-replies`: requests pass, and nothing comes back; connections stay open.
 * - `reset`: requests pass; the first reply is cut in half, by a reset.
 * - `slice`: everything passes, one byte at a time.
 * - `delay`: everything passes, either direction this much later.
 */
export type ProxyMode =
  | "forward"
  | "lose-replies"
  | "swallow"
  | "refuse"
  | "hold"
  | "drop-replies"
  | "reset"
  | "slice"
  | "delay";

/** A TCP proxy on a loopback port, for faults between two processes. */
export interface TcpProxy {
  readonly port: number;
  /** From now on, for connections that are open as well. */
  setMode(mode: ProxyMode): void;
  /** Where connections made from now on lead to. */
  setTarget(target: ProxyTarget): void;
  /** Cuts every connection; new ones are still taken. */
  cut(): void;
  close(): Promise<void>;
}

/** Of `delay`. */
export const DELAY_MS = 150;
const PACES: Readonly<Partial<Record<ProxyMode, Pace>>> = {
  slice: "byte by byte",
  delay: { delayMs: DELAY_MS },
};

/** A loopback TCP port, or the path of a Unix socket. */
export type ProxyTarget = number | string;

/** Starts a proxy in mode `forward`. `onRequest` is shown what whoever connects sends. */
export async function startTcpProxy(
  initialTarget: ProxyTarget,
  onRequest: (bytes: Buffer) => void = () => {},
): Promise<TcpProxy> {
  let mode: ProxyMode = "forward";
  let target = initialTarget;
  const open = new Set<Socket>();
  const nears = new Set<Socket>();
  const server = createServer((near) => {
    if (mode === "refuse") {
      near.destroy();
      return;
    }
    const far = typeof target === "string" ? connect(target) : connect(target, "127.0.0.1");
    open.add(near).add(far);
    nears.add(near);
    if (mode === "hold") near.pause();
    const end = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", () => {
        open.delete(socket);
        nears.delete(near);
        end();
      });
    }
    const pace = () => PACES[mode] ?? "at once";
    const toFar = createPacedPipe(far, pace);
    const toNear = createPacedPipe(near, pace);
    near.on("data", (bytes: Buffer) => {
      onRequest(bytes);
      if (mode !== "swallow") toFar(bytes);
    });
    far.on("data", (bytes: Buffer) => {
      if (mode === "lose-replies") end();
      else if (mode === "reset") {
        near.write(bytes.subarray(0, bytes.length / 2), () => near.resetAndDestroy());
        far.destroy();
      } else if (mode !== "swallow" && mode !== "drop-replies") toNear(bytes);
    });
  });
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    setMode(next) {
      mode = next;
      if (mode === "refuse") cut();
      for (const near of nears) mode === "hold" ? near.pause() : near.resume();
    },
    setTarget(next) {
      target = next;
    },
    cut,
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
