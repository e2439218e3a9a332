import diagnostics from "node:diagnostics_channel";
import type { Http2Stream } from "node:http2";
import { onTestFinished } from "vitest";

/** Calls back with each new HTTP/2 stream of one side of this process, until the test ends. */
export function onHttp2Stream(side: "server" | "client", callback: (stream: Http2Stream) => void): void {
  const name = `http2.${side}.stream.created`;
  const onStream = (message: unknown) => {
    callback((message as { readonly stream: Http2Stream }).stream);
  };
  diagnostics.subscribe(name, onStream);
  onTestFinished(() => {
    diagnostics.unsubscribe(name, onStream);
  });
}
