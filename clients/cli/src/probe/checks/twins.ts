import { type Check, effectsAre } from "../check.ts";
import type { Scene } from "../scene.ts";
import { brief, holds, isLater, isSuccess, sameAnswer } from "../verdict.ts";

/** Sends a request several times at once, and once more afterwards. */
async function together(scene: Scene, count: number) {
  const request = scene.request();
  const twins = await scene.sendTogether(Array.from({ length: count }, () => request));
  return { twins, last: await scene.settle(request) };
}

function oneEffectOf(count: number): Check {
  return {
    id: `twins.${count}`,
    fact: `${count} requests with one key at once have one effect.`,
    async run(scene) {
      const { twins, last } = await together(scene, count);
      return await effectsAre(scene, 1, [...twins, last]);
    },
  };
}

export const TWINS: readonly Check[] = [
  oneEffectOf(2),
  oneEffectOf(10),
  oneEffectOf(100),
  {
    id: "twins.answers",
    fact: "Each of ten requests at once gets the answer, or is asked to come back: 409, 423, 425, 429 or 503.",
    async run(scene) {
      const { twins, last } = await together(scene, 10);
      const odd = twins.find((twin) => !isLater(twin) && !sameAnswer(twin, last));
      return holds(odd === undefined, odd === undefined ? "" : `${brief(odd)} beside ${brief(last)}`);
    },
  },
  {
    id: "twins.settle",
    fact: "After ten requests at once, one more gets a successful answer.",
    async run(scene) {
      const { last } = await together(scene, 10);
      return holds(isSuccess(last), brief(last));
    },
  },
  {
    id: "twins.other-keys",
    fact: "Five operations at once have five effects.",
    async run(scene) {
      const requests = Array.from({ length: 5 }, () => scene.request());
      return await effectsAre(scene, 5, await scene.sendTogether(requests));
    },
  },
];
