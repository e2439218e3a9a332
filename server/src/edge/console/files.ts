import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** Where `npm run build:console` writes the page. */
export const CONSOLE_DIR = fileURLToPath(new URL("../../../console", import.meta.url));

/** One encoding of a file. */
export interface EncodedFile {
  /** The value of `Content-Encoding`. */
  readonly encoding: Encoding;
  readonly bytes: Buffer;
  /** The value of `ETag`. */
  readonly etag: string;
}

/** A file of the page, in memory. */
export interface ConsoleFile {
  /** The value of `Content-Type`. */
  readonly type: string;
  /** Whether the name has a hash of the contents, so that the file never changes. */
  readonly immutable: boolean;
  /** Smallest first; the last one is not compressed. */
  readonly encodings: readonly EncodedFile[];
}

/** The files of the page by the path of their URL, such as `/console/index.html`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

/** The encodings in the order of their size, with the ending of their files. */
const ENCODINGS = { br: ".br", gzip: ".gz", identity: "" } as const;
type Encoding = keyof typeof ENCODINGS;

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
  const files = new Map<string, ConsoleFile>();
  for (const name of names) {
    const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
    // Compressed copies and source maps are no files of their own.
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

/** Each encoding has its own tag: https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3.3 */
function etagOf(bytes: Buffer): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`;
}

/** Returns the smallest encoding of a file that an `Accept-Encoding` header allows; undefined as the header: none is named. */
export function chooseEncoding({ encodings }: ConsoleFile, accepted: string | undefined): EncodedFile {
  const allowed = new Set(
    (accepted ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => part.split(";").map((text) => text.trim()))
      .filter(([, quality = ""]) => !/^q=0(\.0*)?$/.test(quality))
      .map(([name]) => name),
  );
  const chosen = encodings.find(({ encoding }) => encoding === "identity" || allowed.has(encoding));
  if (chosen === undefined) throw new Error("a file has no uncompressed copy");
  return chosen;
}
