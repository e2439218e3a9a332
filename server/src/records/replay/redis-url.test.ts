import { expect, test } from "vitest";
import { parseRedisUrl } from "./redis-url.ts";

const anonymous = { username: undefined, password: undefined, tls: false };
const server = { ...anonymous, kind: "server", database: 0 };
const node = { host: "cache", port: 6379 };

test.each([
  ["redis://cache", { ...server, node }],
  ["redis://cache/", { ...server, node }],
  ["redis://cache:7000/3", { ...server, node: { host: "cache", port: 7000 }, database: 3 }],
  ["redis://[::1]:7000", { ...server, node: { host: "::1", port: 7000 } }],
  ["rediss://cache", { ...server, node, tls: true }],
  ["redis://:p%40ss@cache", { ...server, node, password: "p@ss" }],
  ["redis://me:p%3Ass@cache", { ...server, node, username: "me", password: "p:ss" }],
  ["redis+unix:///run/redis.sock", { ...anonymous, kind: "socket", path: "/run/redis.sock" }],
  [
    "redis+sentinel://:secret@a,b:7001,c/main",
    {
      ...anonymous,
      password: "secret",
      kind: "sentinel",
      master: "main",
      sentinels: [
        { host: "a", port: 26379 },
        { host: "b", port: 7001 },
        { host: "c", port: 26379 },
      ],
    },
  ],
  [
    "rediss+cluster://me:secret@a:7001,b",
    {
      username: "me",
      password: "secret",
      tls: true,
      kind: "cluster",
      nodes: [
        { host: "a", port: 7001 },
        { host: "b", port: 6379 },
      ],
    },
  ],
])("%s is parsed", (url, target) => {
  expect(parseRedisUrl(url)).toEqual(target);
});

test.each([
  "",
  "cache:6379",
  "http://cache",
  "redis://",
  "redis:///3",
  "redis://a,b",
  "redis://cache/main",
  "redis://cache?db=3",
  "redis://cache:99999",
  "redis://secret@cache",
  "redis://a:b:c@cache",
  "redis://:%zz@cache",
  "redis+unix://",
  "redis+unix://cache/run/redis.sock",
  "rediss+unix:///run/redis.sock",
  "redis+sentinel://a,b",
  "redis+sentinel:///main",
  "redis+cluster://a,,b",
  "redis+cluster://a/3",
  "redis+ring://a",
])("%s is refused", (url) => {
  expect(parseRedisUrl(url)).toBeUndefined();
});
