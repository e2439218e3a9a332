import { type Check, effectsAre } from "../check.ts";
import type { Cut } from "../exchange.ts";
import { brief, holds, isSuccess, sameAnswer } from "../verdict.ts";

function oneEffect(id: string, fact: string, cut: Cut): Check {
  return {
    ...{ id, fact },
    async run(scene) {
      const request = scene.request();
      await scene.sendAndCut(request, cut);
      const retry = await scene.settle(request);
      if (!isSuccess(retry)) return holds(false, `the retry gets ${brief(retry)}`);
      return await effectsAre(scene, 1, [retry, await scene.settle(request)]);
    },
  };
}

export const LOST: readonly Check[] = [
  oneEffect(
    "lost.within-request",
    "A cut within the request: the retry succeeds, with one effect.",
    "within the request",
  ),
  oneEffect(
    "lost.after-request",
    "A cut after the request: the retry succeeds, with one effect.",
    "after the request",
  ),
  oneEffect(
    "lost.within-answer",
    "A cut within the answer: the retry succeeds, with one effect.",
    "within the answer",
  ),
  {
    id: "lost.answer",
    compares: true,
    fact: "After a lost answer, each retry gets the same one.",
    async run(scene) {
      const request = scene.request();
      await scene.sendAndCut(request, "after the request");
      const first = await scene.settle(request);
      const second = await scene.settle(request);
      return holds(sameAnswer(first, second), `${brief(first)}, then ${brief(second)}`);
    },
  },
];
