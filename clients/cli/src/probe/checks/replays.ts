import type { Check } from "../check.ts";
import { brief, holds, isSuccess, sameAnswer, skipped } from "../verdict.ts";

/** Headers of one connection (RFC 9110, 7.6.1), which a stored answer must not have. */
const OF_A_CONNECTION = ["upgrade", "proxy-authenticate", "te", "trailer"] as const;

export const REPLAYS: readonly Check[] = [
  {
    id: "replay.late",
    compares: true,
    fact: "A late retry is still replayed.",
    async run(scene) {
      const request = scene.request();
      const first = await scene.send(request);
      await scene.wait(scene.endpoint.lateMs);
      const second = await scene.settle(request);
      return holds(sameAnswer(first, second), `${brief(first)}, then ${brief(second)}`);
    },
  },
  {
    id: "replay.marked",
    fact: "Only the second answer has the header that marks a replay.",
    needs: "replayHeader",
    async run(scene) {
      const name = scene.endpoint.replayHeader?.toLowerCase() ?? "";
      const request = scene.request();
      const first = await scene.send(request);
      const second = await scene.settle(request);
      const [before, after] = [first.headers[name] ?? "absent", second.headers[name] ?? "absent"];
      return holds(before !== "true" && after !== "absent" && before !== after, `${before}, then ${after}`);
    },
  },
  {
    id: "replay.cookies",
    fact: "A replay has no Set-Cookie of the first answer.",
    async run(scene) {
      const request = scene.request();
      const first = await scene.send(request);
      const cookies = first.headers["set-cookie"];
      if (cookies === undefined) return skipped("the first answer sets no cookie");
      const second = await scene.settle(request);
      const again = second.headers["set-cookie"]?.find((cookie) => cookies.includes(cookie));
      return holds(again === undefined, `set-cookie: ${again?.split("=")[0]}=…`);
    },
  },
  {
    id: "replay.cache",
    fact: "A cache may not keep a replay for longer than the first answer.",
    async run(scene) {
      const request = scene.request();
      const first = await scene.send(request);
      const second = await scene.settle(request);
      const added = ["cache-control", "expires", "age"].find(
        (name) => second.headers[name] !== undefined && second.headers[name] !== first.headers[name],
      );
      const isShared =
        added === "cache-control" && /no-store|private|no-cache/.test(String(second.headers[added]));
      return holds(added === undefined || isShared, `${added}: ${added && second.headers[added]}`);
    },
  },
  {
    id: "replay.connection",
    fact: `A replay has no header of the first connection: ${OF_A_CONNECTION.join(", ")}.`,
    async run(scene) {
      const request = scene.request();
      await scene.send(request);
      const second = await scene.settle(request);
      const kept = OF_A_CONNECTION.find((name) => second.headers[name] !== undefined);
      return holds(kept === undefined, `${kept}: ${kept && second.headers[kept]}`);
    },
  },
  {
    id: "replay.again",
    compares: true,
    fact: "The retry of a retry gets the same answer.",
    async run(scene) {
      const request = scene.request();
      await scene.send(request);
      const second = await scene.settle(request);
      const third = await scene.settle(request);
      if (!isSuccess(second)) return skipped(`the retry gets ${brief(second)}`);
      return holds(sameAnswer(second, third), `${brief(second)}, then ${brief(third)}`);
    },
  },
];
