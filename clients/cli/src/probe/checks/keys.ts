import { type Check, effectsAre, simpleKey } from "../check.ts";
import { withHeader } from "../endpoint.ts";
import type { Scene } from "../scene.ts";
import { brief, holds, isRefusal, isSuccess, PASSED, sameBody, type Verdict } from "../verdict.ts";

/** Two different keys are two operations, or a key of this form is refused. */
function distinct(id: string, fact: string, keys: (unique: string) => readonly [string, string]): Check {
  return {
    ...{ id, fact },
    async run(scene) {
      const [one, other] = keys(simpleKey());
      const request = scene.request({ key: one });
      const first = await scene.send(request);
      const second = await scene.send(scene.request({ key: other, body: request.body }));
      const refused = [first, second].filter(isRefusal);
      if (refused.length > 0 && [first, second].every((answer) => isRefusal(answer) || isSuccess(answer)))
        return holds(refused.length === 2 || isOdd(one) !== isOdd(other), brief(refused[0] ?? first));
      return await effectsAre(scene, 2, [first, second]);
    },
  };
}

/** Whether an API may refuse the key for its form alone. */
function isOdd(key: string): boolean {
  return !/^[\w-]+$/.test(key);
}

/** A key of this form is one key, or it is refused both times. */
async function sameOrRefused(scene: Scene, key: string | readonly string[]): Promise<Verdict> {
  const request = scene.request({ key });
  const first = await scene.send(request);
  const second = await scene.settle(request);
  if (isRefusal(first) && isRefusal(second)) return PASSED;
  if (!isSuccess(first) || !isSuccess(second)) return holds(false, `${brief(first)}, then ${brief(second)}`);
  return holds(sameBody(first, second), `${brief(first)}, then ${brief(second)}`);
}

export const KEYS: readonly Check[] = [
  {
    id: "key.missing",
    fact: "A request without a key runs, or gets a 4xx; where a key is required, always a 4xx.",
    async run(scene) {
      const request = scene.request({ key: undefined });
      const answers = [await scene.send(request), await scene.send(request)];
      if (answers.every(isRefusal)) return PASSED;
      if (scene.endpoint.keyRequired || !answers.every(isSuccess))
        return holds(false, answers.map(brief).join(", then "));
      return await effectsAre(scene, 2, answers);
    },
  },
  {
    id: "key.empty",
    fact: "An empty key is refused, or two operations with it have two effects.",
    async run(scene) {
      const answers = [
        await scene.send(scene.request({ key: "" })),
        await scene.send(scene.request({ key: "" })),
      ];
      if (answers.every(isRefusal)) return PASSED;
      if (scene.endpoint.keyRequired || !answers.every(isSuccess))
        return holds(false, answers.map(brief).join(", then "));
      return await effectsAre(scene, 2, answers);
    },
  },
  {
    id: "key.long",
    fact: "A key of 5,000 characters is one key, or refused.",
    run: (scene) => sameOrRefused(scene, simpleKey().padEnd(5000, "x")),
  },
  distinct(
    "key.ends",
    "Keys of 200 characters that differ in the last one are two keys, or refused.",
    (unique) => [`${unique.padEnd(199, "x")}a`, `${unique.padEnd(199, "x")}b`],
  ),
  distinct("key.case", "Keys that differ in upper and lower case are two keys.", (unique) => [
    `${unique}-a`,
    `${unique}-A`,
  ]),
  distinct(
    "key.spaces",
    "A key with a space and the same key without it are two keys, or the first is refused.",
    (unique) => [`${unique} 1`, `${unique}1`],
  ),
  distinct("key.separators", "Keys that differ in their separators are two keys, or refused.", (unique) => [
    `${unique}/a:b`,
    `${unique}:a/b`,
  ]),
  distinct(
    "key.escapes",
    "A key with %2D and the same key with a hyphen are two keys, or the first is refused.",
    (unique) => [`${unique}%2D`, `${unique}-`],
  ),
  {
    id: "key.quotes",
    fact: "A key in quotes, as the IETF draft writes it, is one key, or refused.",
    run: (scene) => sameOrRefused(scene, `"${simpleKey()}"`),
  },
  {
    id: "key.unicode",
    fact: "A key with letters beyond ASCII is one key, or refused.",
    run: (scene) => sameOrRefused(scene, `${simpleKey()}-ключ-鍵`),
  },
  {
    id: "key.name",
    compares: true,
    fact: "The header's name counts in any case.",
    async run(scene) {
      const request = scene.request();
      const { keyHeader } = scene.endpoint;
      const shouted = withHeader(withHeader(request, keyHeader, undefined), keyHeader.toUpperCase(), [
        String(request.headers[keyHeader]),
      ]);
      const first = await scene.send(request);
      const second = await scene.settle(shouted);
      return holds(sameBody(first, second), `${brief(first)}, then ${brief(second)}`);
    },
  },
  {
    id: "key.two",
    fact: "A request with two keys is one operation, or refused.",
    run: (scene) => sameOrRefused(scene, [simpleKey(), simpleKey()]),
  },
];
