import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { onTestFinished } from "vitest";
import { listen } from "../../adapters/http/listen.ts";

/** An operation of the service. */
interface Operation {
  readonly body: string;
  readonly caller: string;
  /** Undefined while it runs. */
  answer?: { readonly status: number; readonly id: number; readonly isCoded: boolean };
  replays: number;
  endedAtMs: number;
  isPoisoned: boolean;
  wasLost: boolean;
}

/** How long an effect takes. */
const EFFECT_MS = 10;
const ALONE_MS = 2000;
/** The effects of the probe's first two operations, which only show whether answers differ; the check comes after them. */
const EFFECTS_BEFORE = 2;

/**
 * Starts a service with idempotency keys that keeps every promise of the probe, but for the one that is named after a check.
 * GET /count answers with the number of its effects, and POST /restart with what a restart leaves of its memory.
 */
export async function startService(fault?: string) {
  const has = (id: string) => fault === id;
  const operations = new Map<string, Operation>();
  let effects = 0;
  let running = 0;
  /** Resolved once two requests of the check were here at the same time. */
  const together = Promise.withResolvers<void>();

  function keyOf({ headers, rawHeaders }: IncomingMessage): string | undefined {
    const sent = headers["idempotency-key"];
    if (has("key.name") && !rawHeaders.includes("Idempotency-Key")) return undefined;
    if (has("key.missing") && sent === undefined) return "none";
    if (sent === undefined || (sent === "" && !has("key.empty"))) return undefined;
    let key = String(sent);
    if (has("key.ends")) key = key.slice(0, 64);
    if (has("key.case")) key = key.toLowerCase();
    if (has("key.spaces")) key = key.replaceAll(" ", "");
    if (has("key.separators")) key = key.replaceAll(/[/:]/g, "-");
    if (has("key.escapes")) key = decodeURIComponent(key);
    return has("key.two") && key.includes(", ") ? undefined : key;
  }

  function breaksOn(key: string): boolean {
    if (has("key.long")) return key.length > 255;
    if (has("key.quotes")) return key.includes('"');
    return has("key.unicode") && /[^ -~]/.test(key);
  }

  /** Whether the fault lets the request run without a guard. */
  function escapes({ headers }: IncomingMessage, body: string): boolean {
    if (has("body.large")) return body.length > 32_768;
    if (has("body.chunked")) return headers["transfer-encoding"] === "chunked";
    return has("body.compressed") && headers["content-encoding"] === "gzip";
  }

  function slotOf({ url = "", method = "" }: IncomingMessage, caller: string, key: string, body: string) {
    if (has("same-key.new-key")) return body;
    return JSON.stringify([
      key,
      has("other.path") ? "" : url,
      has("other.method") ? "" : method,
      has("other.caller") || has("other.caller-kept") ? "" : caller,
      has("other.body-together") ? body : "",
    ]);
  }

  function refuse(res: ServerResponse, status: number, text = "refused") {
    res.writeHead(status, { "content-type": "text/plain" }).end(text);
  }

  async function send(req: IncomingMessage, res: ServerResponse, operation: Operation, isReplay: boolean) {
    const { id = 0, isCoded = false, status = 201 } = operation.answer ?? {};
    const marks = isReplay && !has("replay.marked") ? { "idempotency-replayed": "true" } : {};
    let text = JSON.stringify({ id, currency: "EUR" });
    if (isReplay && has("same-key.body")) text = JSON.stringify({ currency: "EUR", id });
    if (has("replay.again") && operation.replays === 2) text = JSON.stringify({ id, again: true });
    if (has("lost.answer") && operation.wasLost) text = JSON.stringify({ id, replays: operation.replays });
    const keepsCoding = has("body.answer-coding") && isCoded;
    const isGzip = keepsCoding || String(req.headers["accept-encoding"] ?? "").includes("gzip");
    res.writeHead(isReplay && has("same-key.status") ? 200 : status, {
      "content-type": "application/json",
      ...marks,
      ...(isGzip && { "content-encoding": "gzip" }),
      ...(!(isReplay && has("same-key.headers")) && { location: `/charges/${id}` }),
      ...((!isReplay || has("replay.cookies")) && { "set-cookie": `session=${id}` }),
      ...(isReplay && has("replay.cache") && { "cache-control": "max-age=60" }),
      ...(isReplay && has("replay.connection") && { "proxy-authenticate": "Basic" }),
    });
    if (has("lost.within-answer") && !isReplay && id === EFFECTS_BEFORE + 1) {
      res.flushHeaders();
      await once(res, "close");
    }
    res.end(isGzip ? gzipSync(text) : text);
  }

  /** Takes as long as the fault needs to show: until another request is here, or the connection has ended. */
  async function effectOf(res: ServerResponse): Promise<void> {
    const isChecked = effects >= EFFECTS_BEFORE;
    if (isChecked && fault?.startsWith("twins.")) {
      if (running > 1) together.resolve();
      // A request that comes alone waits for no other.
      await Promise.race([together.promise, pause(ALONE_MS)]);
    } else if (effects === EFFECTS_BEFORE && (has("lost.after-request") || has("lost.answer"))) {
      await once(res, "close");
    } else await pause(EFFECT_MS);
  }

  async function run(req: IncomingMessage, res: ServerResponse, operation: Operation): Promise<void> {
    running++;
    await effectOf(res);
    running--;
    effects++;
    const isCoded = String(req.headers["accept-encoding"] ?? "").includes("gzip");
    operation.answer = { status: 201, id: effects, isCoded };
    operation.endedAtMs = performance.now();
    operation.wasLost = req.socket.destroyed;
    await send(req, res, operation, false);
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.url === "/count") return refuse(res, 200, String(effects));
    if (req.url === "/restart") {
      if (has("error.restart")) operations.clear();
      return refuse(res, 200);
    }
    const key = keyOf(req);
    const caller = String(req.headers.authorization);
    const early = has("lost.within-request") ? slotOf(req, caller, key ?? "", "") : undefined;
    if (early !== undefined && operations.has(early) && operations.get(early)?.answer === undefined)
      return refuse(res, 400, "stuck");
    const fresh = (body: string): Operation => ({
      ...{ body, caller, replays: 0, endedAtMs: 0, isPoisoned: false, wasLost: false },
    });
    if (early !== undefined && !operations.has(early)) operations.set(early, fresh(""));
    const bytes = await buffer(req);
    const body = (req.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes).toString();
    if (key !== undefined && breaksOn(key)) return refuse(res, 500);
    if (key === undefined || escapes(req, body)) return await run(req, res, fresh(body));
    const slot = slotOf(req, caller, key, body);
    const known = operations.get(slot);
    const fingerprint = has("body.large-tail") ? body.slice(0, 1024) : body;
    if (known === undefined || known.body === "") return await begin(req, res, slot, fresh(fingerprint));
    await repeat(req, res, { slot, known, again: fresh(fingerprint) });
  }

  async function begin(req: IncomingMessage, res: ServerResponse, slot: string, operation: Operation) {
    if (has("twins.other-keys") && running > 0) {
      together.resolve();
      return refuse(res, 409);
    }
    if (operation.body.includes("invalid")) {
      if (has("error.client")) effects++;
      if (has("error.corrected")) operations.set(slot, operation);
      return refuse(res, 422);
    }
    if (req.headers["x-fail"] !== undefined) {
      if (has("error.server-effect")) effects++;
      if (has("error.server")) operations.set(slot, { ...operation, isPoisoned: true });
      return refuse(res, 500);
    }
    if (!fault?.match(/^twins\.\d/)) operations.set(slot, operation);
    await run(req, res, operation);
    operations.set(slot, operation);
    const isForgotten =
      (has("lost.after-request") && operation.wasLost) || (has("lost.within-answer") && req.socket.destroyed);
    if (isForgotten) operations.delete(slot);
    if (has("same-key.later-operations") && operations.size > 5)
      operations.delete(operations.keys().next().value ?? "");
  }

  async function repeat(
    req: IncomingMessage,
    res: ServerResponse,
    { slot, known, again }: { readonly slot: string; readonly known: Operation; readonly again: Operation },
  ): Promise<void> {
    if (known.isPoisoned) return refuse(res, has("error.server") ? 500 : 400);
    if (has("other.caller-kept") && known.caller !== again.caller) return await begin(req, res, slot, again);
    if (has("error.corrected") && known.body.includes("invalid"))
      return refuse(res, again.body === known.body ? 422 : 500);
    if (known.answer === undefined) {
      together.resolve();
      if (has("twins.settle")) known.isPoisoned = true;
      return refuse(res, has("twins.answers") ? 500 : 409);
    }
    if (known.body !== again.body && !has("other.body")) {
      if (has("other.body-effect")) effects++;
      if (has("other.body-kept")) operations.delete(slot);
      return refuse(res, 422, has("other.body-explained") ? "" : "another body");
    }
    known.replays++;
    if (has("same-key.effect")) effects++;
    const isForgotten =
      (has("same-key.ten") && known.replays > 5) ||
      (has("replay.late") && performance.now() > known.endedAtMs + EFFECT_MS * 20);
    if (isForgotten) return await begin(req, res, slot, again);
    await send(req, res, known, true);
  }

  const server = createServer((req, res) => {
    // The probe ends connections on purpose.
    handle(req, res).catch(() => res.destroy());
  });
  const app = await listen(server);
  onTestFinished(() => app.close());
  return `http://127.0.0.1:${app.port}`;
}
