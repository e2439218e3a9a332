import { type Check, effectsAre } from "../check.ts";
import type { Scene } from "../scene.ts";
import { brief, holds, PASSED, sameAnswer, sameBody } from "../verdict.ts";

/** Headers that describe a body or name what was made. */
const DESCRIBING = ["content-type", "content-language", "content-disposition", "location"] as const;

async function twice(scene: Scene) {
  const request = scene.request();
  return [await scene.send(request), await scene.settle(request)] as const;
}

export const SAME_KEY: readonly Check[] = [
  {
    id: "same-key.effect",
    fact: "A request sent twice has one effect.",
    run: async (scene) => effectsAre(scene, 1, await twice(scene)),
  },
  {
    id: "same-key.status",
    fact: "The second answer has the status of the first.",
    async run(scene) {
      const [first, second] = await twice(scene);
      return holds(first.status === second.status, `${first.status}, then ${second.status}`);
    },
  },
  {
    id: "same-key.body",
    compares: true,
    fact: "The second answer has the first one's body, byte by byte.",
    async run(scene) {
      const [first, second] = await twice(scene);
      return holds(sameBody(first, second), `${brief(first)}, then ${brief(second)}`);
    },
  },
  {
    id: "same-key.headers",
    fact: `The second answer has the first one's ${DESCRIBING.join(", ")}.`,
    async run(scene) {
      const [first, second] = await twice(scene);
      const other = DESCRIBING.find((name) => first.headers[name] !== second.headers[name]);
      if (other === undefined) return PASSED;
      return holds(false, `${other}: ${first.headers[other]}, then ${second.headers[other]}`);
    },
  },
  {
    id: "same-key.ten",
    fact: "Ten attempts, one after another, have one effect.",
    async run(scene) {
      const request = scene.request();
      const answers = [await scene.send(request)];
      for (let attempt = 1; attempt < 10; attempt++) answers.push(await scene.settle(request));
      return await effectsAre(scene, 1, answers);
    },
  },
  {
    id: "same-key.later-operations",
    compares: true,
    fact: "An operation is still replayed after ten others.",
    async run(scene) {
      const request = scene.request();
      const first = await scene.send(request);
      for (let other = 0; other < 10; other++) await scene.send(scene.request());
      const second = await scene.settle(request);
      return holds(sameAnswer(first, second), `${brief(first)}, then ${brief(second)}`);
    },
  },
  {
    id: "same-key.new-key",
    fact: "The same body under a new key has an effect of its own.",
    async run(scene) {
      const request = scene.request();
      const other = { ...request, headers: scene.request().headers };
      return await effectsAre(scene, 2, [await scene.send(request), await scene.send(other)]);
    },
  },
];
