import { type Check, effectsAre, simpleKey } from "../check.ts";
import type { Changes } from "../endpoint.ts";
import type { Scene } from "../scene.ts";
import { brief, holds, isLater, isRefusal, isSuccess, sameAnswer, sameBody, skipped } from "../verdict.ts";

/** Sends two different requests under one key. */
async function under(scene: Scene, changes: Changes) {
  const key = simpleKey();
  const request = scene.request({ key });
  const first = await scene.send(request);
  return { request, first, other: await scene.send(scene.request({ body: request.body, ...changes, key })) };
}

/** The other request gets an answer of its own: it runs, or it is refused. */
function ownAnswer(id: string, fact: string, needs: "otherPath" | "otherMethod" | "otherHeaders"): Check {
  return {
    ...{ id, fact, needs },
    async run(scene) {
      const { otherPath, otherMethod, otherHeaders } = scene.endpoint;
      const changes = {
        otherPath: otherPath === undefined ? {} : { path: otherPath },
        otherMethod: otherMethod === undefined ? {} : { method: otherMethod },
        otherHeaders: otherHeaders === undefined ? {} : { as: otherHeaders },
      }[needs];
      const { first, other } = await under(scene, changes);
      return holds(
        !isSuccess(other) || !sameBody(first, other),
        `the first request's answer: ${brief(other)}`,
      );
    },
  };
}

export const OTHER_REQUEST: readonly Check[] = [
  {
    id: "other.body",
    fact: "A key with another body is refused with a 4xx.",
    needs: "otherBody",
    async run(scene) {
      const { other } = await under(scene, { body: scene.endpoint.otherBody ?? "" });
      return holds(isRefusal(other), brief(other));
    },
  },
  {
    id: "other.body-effect",
    fact: "A key with another body has no second effect.",
    needs: "otherBody",
    async run(scene) {
      const { first, other } = await under(scene, { body: scene.endpoint.otherBody ?? "" });
      return await effectsAre(scene, 1, [first, other]);
    },
  },
  {
    id: "other.body-kept",
    fact: "After a request with another body, the first one is still replayed.",
    needs: "otherBody",
    async run(scene) {
      const { request, first } = await under(scene, { body: scene.endpoint.otherBody ?? "" });
      const replay = await scene.settle(request);
      return holds(sameAnswer(first, replay), `${brief(first)}, then ${brief(replay)}`);
    },
  },
  {
    id: "other.body-explained",
    fact: "The refusal of another body has a body that explains it.",
    needs: "otherBody",
    async run(scene) {
      const { other } = await under(scene, { body: scene.endpoint.otherBody ?? "" });
      if (!isRefusal(other)) return skipped(`nothing was refused: ${other.status}`);
      return holds(other.body.byteLength > 0, `${other.status} without a body`);
    },
  },
  {
    id: "other.body-together",
    fact: "Of two different bodies under one key at once, at most one has an effect.",
    needs: "otherBody",
    async run(scene) {
      const key = simpleKey();
      const requests = [scene.request({ key }), scene.request({ key, body: scene.endpoint.otherBody ?? "" })];
      const answers = await scene.sendTogether(requests);
      const isClear = answers.every((one) => isSuccess(one) || isRefusal(one) || isLater(one));
      return isClear ? await effectsAre(scene, 1, answers) : holds(false, answers.map(brief).join(", "));
    },
  },
  ownAnswer("other.path", "Another path does not get the first one's answer under its key.", "otherPath"),
  ownAnswer(
    "other.method",
    "Another method does not get the first one's answer under its key.",
    "otherMethod",
  ),
  ownAnswer(
    "other.caller",
    "Another caller does not get the first one's answer under its key.",
    "otherHeaders",
  ),
  {
    id: "other.caller-kept",
    fact: "After another caller used the key, the first one's request is still replayed.",
    needs: "otherHeaders",
    async run(scene) {
      const { request, first } = await under(scene, { as: scene.endpoint.otherHeaders ?? {} });
      const replay = await scene.settle(request);
      return holds(sameAnswer(first, replay), `${brief(first)}, then ${brief(replay)}`);
    },
  },
];
