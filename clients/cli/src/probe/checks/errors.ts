import { type Check, effectsAre, simpleKey } from "../check.ts";
import type { Scene } from "../scene.ts";
import { brief, holds, isRefusal, isSuccess, sameAnswer, skipped } from "../verdict.ts";

/** Sends a request that the endpoint answers with 5xx, and then its retry. */
async function afterServerError(scene: Scene) {
  const key = simpleKey();
  const request = scene.request({ key });
  const failing = { ...request, headers: { ...request.headers, ...scene.endpoint.failHeaders } };
  const error = await scene.send(failing);
  return error.status < 500 ? { error } : { error, request, retry: await scene.settle(request) };
}

export const ERRORS: readonly Check[] = [
  {
    id: "error.client",
    fact: "A request refused with a 4xx is refused again, without effect.",
    needs: "invalidBody",
    async run(scene) {
      const request = scene.request({ body: scene.endpoint.invalidBody ?? "" });
      const first = await scene.send(request);
      if (!isRefusal(first)) return skipped(`invalidBody gets ${first.status}`);
      const second = await scene.settle(request);
      if (first.status !== second.status) return holds(false, `${first.status}, then ${second.status}`);
      return await effectsAre(scene, 0, [first, second]);
    },
  },
  {
    id: "error.corrected",
    fact: "The corrected request under a refused one's key runs, or gets a 4xx.",
    needs: "invalidBody",
    async run(scene) {
      const key = simpleKey();
      const first = await scene.send(scene.request({ key, body: scene.endpoint.invalidBody ?? "" }));
      if (!isRefusal(first)) return skipped(`invalidBody gets ${first.status}`);
      const second = await scene.send(scene.request({ key }));
      return holds(isSuccess(second) || isRefusal(second), brief(second));
    },
  },
  {
    id: "error.server",
    fact: "The retry of a request that got a 5xx runs.",
    needs: "failHeaders",
    async run(scene) {
      const { error, retry } = await afterServerError(scene);
      if (retry === undefined) return skipped(`failHeaders get ${error.status}`);
      return holds(isSuccess(retry), `${error.status}, then ${brief(retry)}`);
    },
  },
  {
    id: "error.server-effect",
    fact: "A 5xx and its retries have one effect together, and each further retry gets its answer.",
    needs: "failHeaders",
    async run(scene) {
      const { error, request, retry } = await afterServerError(scene);
      if (retry === undefined) return skipped(`failHeaders get ${error.status}`);
      const again = await scene.settle(request);
      if (!sameAnswer(retry, again)) return holds(false, `${brief(retry)}, then ${brief(again)}`);
      return await effectsAre(scene, 1, [retry, again]);
    },
  },
  {
    id: "error.restart",
    compares: true,
    fact: "After a restart of the service, a request is still replayed.",
    needs: "restartCommand",
    async run(scene) {
      const request = scene.request();
      const first = await scene.send(request);
      await scene.restart();
      const second = await scene.settle(request);
      return holds(sameAnswer(first, second), `${brief(first)}, then ${brief(second)}`);
    },
  },
];
