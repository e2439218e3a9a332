import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

/**
 * Returns a plugin that writes each built file twice more, as `NAME.br` and `NAME.gz`, so that the server
 * compresses nothing when it answers.
 */
export function compressFiles(): Plugin {
  let dir = "";
  return {
    name: "onceward:compress-files",
    apply: "build",
    configResolved(config) {
      dir = config.build.outDir;
    },
    async closeBundle(error) {
      if (error !== undefined) return;
      const files = await readdir(dir, { recursive: true, withFileTypes: true });
      await Promise.all(
        files.filter((file) => file.isFile()).map((file) => compressFile(join(file.parentPath, file.name))),
      );
    },
  };
}

async function compressFile(file: string): Promise<void> {
  const bytes = await readFile(file);
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  await writeFile(`${file}.br`, await compressBrotli(bytes, { params: quality }));
  await writeFile(`${file}.gz`, await compressGzip(bytes, { level: constants.Z_BEST_COMPRESSION }));
}
