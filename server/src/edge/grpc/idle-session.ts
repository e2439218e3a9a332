import type { Http2Session, Http2Stream } from "node:http2";

/**
 * Asks a connection to leave once nothing has been under way on it for so long.
 *
 * @returns what each of its streams is to be told to.
 */
export function closeWhenIdle(session: Http2Session, idleMs: number): (stream: Http2Stream) => void {
  let open = 0;
  const timer = setTimeout(() => {
    if (open === 0) session.close();
  }, idleMs);
  timer.unref();
  session.once("close", () => clearTimeout(timer));
  const end = () => {
    open--;
    if (open === 0) timer.refresh();
  };
  return (stream) => {
    open++;
    stream.on("close", end);
  };
}
