import { fileURLToPath } from "node:url";
import type { Surface } from "./declarations.ts";
import type { Declaration, Place } from "./parse-declarations.ts";

/** The file of the report. */
export const API_FILE = fileURLToPath(new URL("../../../clients/typescript/api.md", import.meta.url));

const HEADER = `# What \`@onceward/client\` exports

Written by \`npm run generate -- api\`: every export, and the declarations that it needs, with their docstrings. Messages,
schemas and enums of the service are not repeated here: the
[proto files](../../proto/onceward/v1) document them.
`;

/** Returns the exports of every entry by name, and all declarations that they need, each once. */
export function apiReport(surface: Surface): string {
  const entries = [...surface.entries].map(([entry, module]) => {
    const places = exportsOf(surface, module);
    const lines = [...places].map(([name, place]) =>
      name === place.name ? name : `${name} (${place.name} of ${place.module})`,
    );
    for (const generated of generatedOf(surface, module)) lines.push(`* of ${generated}`);
    return section(`@onceward/client${entry.slice(1)}`, "text", lines.sort());
  });
  const needed = reachable(surface);
  const modules = [...surface.modules].map(([module, { own }]) => {
    const texts = own.filter((declaration) => needed.has(declaration)).map(({ source }) => source);
    return texts.length === 0 ? [] : [section(`${module}.ts`, "ts", texts)];
  });
  return [HEADER, ...entries, "## Declarations\n", ...modules.flat()].join("\n");
}

function section(title: string, language: string, lines: readonly string[]): string {
  return `## \`${title}\`\n\n\`\`\`${language}\n${lines.join("\n")}\n\`\`\`\n`;
}

/**
 * Returns a module's exports with the places of their declarations, without those that `generatedOf` returns.
 */
export function exportsOf(surface: Surface, module: string): ReadonlyMap<string, Place> {
  const declarations = surface.modules.get(module);
  if (declarations === undefined) throw new Error(`there is no module ${module}`);
  const places = new Map<string, Place>();
  for (const star of declarations.stars) {
    if (isGenerated(star)) continue;
    for (const [name, place] of exportsOf(surface, star)) places.set(name, place);
  }
  for (const [name, place] of declarations.reexports) places.set(name, declared(surface, place));
  for (const { name, exported } of declarations.own) if (exported) places.set(name, { module, name });
  return places;
}

/** Returns the names of all of a module's exports, those of generated modules too. */
export function exportNames(surface: Surface, module: string): readonly string[] {
  const declarations = surface.modules.get(module);
  const stars = declarations?.stars.flatMap((star) => exportNames(surface, star)) ?? [];
  return [...exportsOf(surface, module).keys(), ...stars];
}

/** Returns the declarations of a name; none for a generated one. */
export function declarationsOf(surface: Surface, { module, name }: Place): readonly Declaration[] {
  if (isGenerated(module)) return [];
  return surface.modules.get(module)?.own.filter((declaration) => declaration.name === name) ?? [];
}

function generatedOf(surface: Surface, module: string): readonly string[] {
  const stars = surface.modules.get(module)?.stars ?? [];
  return stars.flatMap((star) => (isGenerated(star) ? [star] : generatedOf(surface, star)));
}

/** Returns whether a module is generated from the proto files, which document it. */
export function isGenerated(module: string): boolean {
  return module.startsWith("gen/");
}

/** Follows re-exports to the place of a name's declaration. */
function declared(surface: Surface, place: Place): Place {
  if (isGenerated(place.module)) return place;
  return exportsOf(surface, place.module).get(place.name) ?? place;
}

/** Returns every declaration that an export needs. */
export function reachable(surface: Surface): ReadonlySet<Declaration> {
  const found = new Set<Declaration>();
  const queue = [...surface.entries.values()].flatMap((module) => [...exportsOf(surface, module).values()]);
  for (const place of queue) {
    for (const declaration of declarationsOf(surface, place)) {
      if (found.has(declaration)) continue;
      found.add(declaration);
      const words = new Set(declaration.text.match(/[\w$]+/g));
      queue.push(...[...words].map((word) => placeOf(surface, place.module, word)));
    }
  }
  return found;
}

/**
 * Returns the place that a word in a module's declarations refers to. If the word is not a name of ours, it
 * has none there.
 */
function placeOf(surface: Surface, module: string, word: string): Place {
  const imported = surface.modules.get(module)?.imports.get(word);
  return imported === undefined ? { module, name: word } : declared(surface, imported);
}
