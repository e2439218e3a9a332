import { readdir, readFile, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { ENCODINGS, type Encoding, etagOf, type StaticFile } from "../transport/http/static-files.ts";

/** Where `npm run build:console` writes the page. */
export const CONSOLE_DIR = fileURLToPath(new URL("../../console", import.meta.url));

/** The files of the page by the path of their URL, such as `/console/index.html`. */
export type ConsoleFiles = ReadonlyMap<string, StaticFile>;

/** Several times what a page has: more is another directory, given by mistake. */
const MAX_FILES = 1000;
const MAX_BYTES = 64 * 1024 * 1024;

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  ico: "image/x-icon",
  json: "application/json",
  txt: "text/plain; charset=utf-8",
  webmanifest: "application/manifest+json",
  woff2: "font/woff2",
};

/**
 * Reads the files of a directory and their compressed copies, which end with `.br` and `.gz`. Requests are answered from this
 * map only, so that no request names a path of the file system. Returns undefined if the page was not built.
 *
 * @throws Error if the directory has more files or bytes than a page.
 */
export async function readConsoleFiles(dir: string): Promise<ConsoleFiles | undefined> {
  const names = await filesIn(dir);
  if (!names.includes("index.html")) return undefined;
  if (names.length > MAX_FILES) throw new Error(`${dir} has more than ${MAX_FILES} files`);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(dir, name))).size));
  if (sizes.reduce((sum, size) => sum + size, 0) > MAX_BYTES)
    throw new Error(`${dir} has more than ${MAX_BYTES} bytes`);

  const contents = new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(dir, name))] as const)),
  );
  const files = new Map<string, StaticFile>();
  for (const name of names) {
    const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
    // Compressed copies and source maps are not separate files.
    if (type === undefined) continue;
    const encodings = Object.entries(ENCODINGS).flatMap(([encoding, ending]) => {
      const bytes = contents.get(`${name}${ending}`);
      return bytes === undefined ? [] : [{ encoding: encoding as Encoding, bytes, etag: etagOf(bytes) }];
    });
    const path = name.split(sep).join("/");
    files.set(`/console/${path}`, { type, immutable: path.startsWith("assets/"), encodings });
  }
  return files;
}

/** Returns the paths of all files below a directory; none if there is no such directory. */
async function filesIn(dir: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(dir, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(dir.length + 1));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
