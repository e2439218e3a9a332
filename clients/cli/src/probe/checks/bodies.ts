import { gunzipSync } from "node:zlib";
import { type Check, effectsAre, unlessRefusedAnyway } from "../check.ts";
import type { Answer } from "../exchange.ts";
import type { Scene } from "../scene.ts";
import {
  brief,
  holds,
  isRefusal,
  isSuccess,
  PASSED,
  sameAnswer,
  sameBody,
  skipped,
  type Verdict,
} from "../verdict.ts";

/** As large as many bodies of requests are allowed to be. */
const LARGE_BODY_BYTES = 65_536;

async function oneOperation(scene: Scene, answers: readonly [Answer, Answer]): Promise<Verdict> {
  const [first, second] = answers;
  if (isRefusal(first) && isRefusal(second)) return skipped(`refused: ${brief(first)}`);
  if (!sameAnswer(first, second)) return holds(false, `${brief(first)}, then ${brief(second)}`);
  return await effectsAre(scene, 1, answers);
}

export const BODIES: readonly Check[] = [
  {
    id: "body.large",
    fact: `A body of ${LARGE_BODY_BYTES.toLocaleString("en")} bytes is guarded.`,
    async run(scene) {
      const { body, ...rest } = scene.request();
      const request = { ...rest, body: body.padEnd(LARGE_BODY_BYTES) };
      return await oneOperation(scene, [await scene.send(request), await scene.settle(request)]);
    },
  },
  {
    id: "body.large-tail",
    fact: "A large body that differs in its last bytes is another body.",
    needs: "otherBody",
    async run(scene) {
      const request = scene.request();
      const first = await scene.send({ ...request, body: request.body.padStart(LARGE_BODY_BYTES) });
      if (!isSuccess(first)) return skipped(`refused: ${brief(first)}`);
      const body = (scene.endpoint.otherBody ?? "").padStart(LARGE_BODY_BYTES);
      const second = await scene.send({ ...request, body: scene.request({ body }).body });
      const differs = !isSuccess(second) || !sameBody(first, second);
      const verdict = holds(differs, `the first body's answer: ${brief(second)}`);
      return await unlessRefusedAnyway(scene, { body }, verdict);
    },
  },
  {
    id: "body.chunked",
    fact: "A body in chunks is the same request as one with Content-Length.",
    async run(scene) {
      const request = scene.request();
      const first = await scene.send({ ...request, encoding: "chunked" });
      return await oneOperation(scene, [first, await scene.settle(request)]);
    },
  },
  {
    id: "body.compressed",
    fact: "A body in gzip is guarded, where the API accepts it.",
    async run(scene) {
      const request = scene.request({ encoding: "gzip" });
      const first = await scene.send(request);
      if (!isSuccess(first)) return skipped(`not accepted: ${first.status}`);
      return await oneOperation(scene, [first, await scene.settle(request)]);
    },
  },
  {
    id: "body.answer-coding",
    fact: "A retry that accepts no gzip can read the answer to a request that did.",
    async run(scene) {
      const request = scene.request();
      const coded = { ...request, headers: { ...request.headers, "accept-encoding": "gzip" } };
      const plain = { ...request, headers: { ...request.headers, "accept-encoding": "identity" } };
      const first = await scene.send(coded);
      const second = await scene.settle(plain);
      const coding = second.headers["content-encoding"] ?? "identity";
      if (coding !== "identity") return holds(false, `content-encoding: ${coding}`);
      if (second.status === 406 || !isSuccess(second)) return PASSED;
      return holds(plainBody(first).equals(second.body), `${brief(first)}, then ${brief(second)}`);
    },
  },
];

function plainBody({ headers, body }: Answer): Buffer {
  return headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
}
