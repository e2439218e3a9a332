import { EventEmitter } from "node:events";
import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { frameMessage } from "../receive/read-body.ts";
import { Health } from "./health.ts";

const MAX_WATCHES = 10_000;
const [SERVING, NOT_SERVING, SERVICE_UNKNOWN] = [1, 2, 3].map((status) =>
  frameMessage(Buffer.of(0x08, status)),
);

class FakeStream extends EventEmitter {
  closed = false;
  destroyed = false;
  headersSent = false;
  status: unknown;
  readonly written: Buffer[] = [];
  respond(headers: OutgoingHttpHeaders) {
    this.status = headers["grpc-status"];
  }
  write(message: Buffer) {
    this.written.push(message);
  }
  resume() {}
  close() {
    this.closed = true;
    this.emit("close");
  }
}

/** Opens a watch on a connection of its own. */
function open(health: Health): FakeStream {
  const stream = new FakeStream();
  health.watch(stream as unknown as ServerHttp2Stream, new Set());
  return stream;
}

function ask(stream: FakeStream, service: string): void {
  stream.emit("data", frameMessage(Buffer.from(`\n${String.fromCharCode(service.length)}${service}`)));
  stream.emit("end");
}

test.each(["an unknown service", "a request that is not complete"])(
  "a watch of %s is one of the 10,000 of a process",
  (kind) => {
    const health = new Health(["a"]);
    const watches = Array.from({ length: MAX_WATCHES }, () => open(health));
    if (kind === "an unknown service") for (const watch of watches) ask(watch, "b");
    const [first] = watches;
    expect(open(health).status).toBe(Code.ResourceExhausted);
    first?.close();
    const another = open(health);
    ask(another, "b");
    expect(another.written).toEqual([SERVICE_UNKNOWN]);
  },
);

test("a change is written to the watches of a service, and not to those of an unknown one", () => {
  const health = new Health(["a"]);
  const [known, unknown] = [open(health), open(health)];
  ask(known, "a");
  ask(unknown, "b");
  health.setServing(true);
  expect(known.written).toEqual([NOT_SERVING, SERVING]);
  expect(unknown.written).toEqual([SERVICE_UNKNOWN]);
});
