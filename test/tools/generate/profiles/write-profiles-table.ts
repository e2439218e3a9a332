import { writeFileSync } from "node:fs";
import { PROBLEMS } from "../../../../clients/typescript/src/http/problems.ts";
import { PROFILES } from "../../../../clients/typescript/src/http/profiles.ts";

/** Writes the profiles of HTTP and the guard's problems for clients in other languages; part of `npm run generate`. */
const TABLES = ["python/src/onceward/http_profiles.json", "go/onceward/oncewardhttp/profiles.json"];

// What a profile does not have is null: JSON has no members that are undefined.
const profiles = Object.fromEntries(
  Object.entries(PROFILES).map(([name, profile]) => [
    name,
    { ...profile, replayed: profile.replayed ?? null },
  ]),
);
const text = `${JSON.stringify({ profiles, problems: PROBLEMS }, undefined, 2)}\n`;
for (const table of TABLES) writeFileSync(new URL(`../../../../clients/${table}`, import.meta.url), text);
