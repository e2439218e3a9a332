import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createPacedPipe, type Pace } from "./paced-pipe.ts";

/**
 * How a proxy treats bytes and connections.
 *
 * - `forward`: everything passes.
 * - `lose-replies`: requests pass; the first bytes of a reply cut the connection instead.
 * - `swallow`: bytes of both directions are dropped, and connections stay open, as in a dead network.
 * - `refuse`: open connections are cut, and new ones immediately.
 * - `hold`: requests wait until the mode changes.
 * - `drop-replies`: requests pass, replies are dropped, and connections stay open.
 * - `reset`: requests pass; a reset cuts the first reply in half.
 * - `slice`: everything passes, one byte at a time.
 * - `delay`: everything passes, delayed in both directions.
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
  /** Changes the mode of open and new connections. */
  setMode(mode: ProxyMode): void;
  /** Changes the target of new connections. */
  setTarget(target: ProxyTarget): void;
  /** Cuts all connections; new ones are still accepted. */
  cut(): void;
  close(): Promise<void>;
}

/** The delay of the mode `delay`, in each direction. */
const DELAY_MS = 150;
const PACES: Readonly<Partial<Record<ProxyMode, Pace>>> = {
  slice: "byte by byte",
  delay: { delayMs: DELAY_MS },
};

/** A loopback TCP port, or the path of a Unix socket. */
export type ProxyTarget = number | string;

/** Starts a proxy in mode `forward`. `onRequest` is called with the bytes that clients send. */
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
