import { fileURLToPath } from "node:url";
import { defaultClientConditions, defineConfig } from "vite";
import { compressFiles } from "./build/compress-files.ts";

const BUILD_DIR = fileURLToPath(new URL("../../server/console/", import.meta.url));
const CLIENT_SOURCE = fileURLToPath(new URL("../typescript/src/", import.meta.url));
/** The HTTP port of `npm start`. */
const SERVER = "http://localhost:8080";

/**
 * Builds the page into `server/console/`. Nothing is inline, because the server's Content-Security-Policy allows
 * only files of its own origin: no small assets as data URLs, no polyfill for preloading.
 */
export default defineConfig(({ command }) => {
  // A test's NODE_ENV would otherwise build the libraries' development versions, which are larger.
  if (command === "build") process.env.NODE_ENV = "production";
  return {
    base: "/console/",
    resolve: {
      conditions: ["@onceward/source", ...defaultClientConditions],
      alias: { "@onceward/errors": `${CLIENT_SOURCE}errors`, "@onceward/gen": `${CLIENT_SOURCE}gen` },
    },
    build: {
      outDir: BUILD_DIR,
      emptyOutDir: true,
      // Browsers with light-dark(), popover and invoker-free <dialog>: all current ones since May 2024.
      target: ["chrome123", "firefox125", "safari17.5"],
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: {
        // Compressing takes longer than bundling, as it should.
        checks: { bundlerTimings: false },
        // A chunk of styles would have a dot in its name, which those of a file and its hash have not.
        output: { chunkFileNames: ({ name }) => `assets/${name.replaceAll(".", "-")}-[hash].js` },
        onwarn(warning, warn) {
          // TanStack Query marks its modules for server components, which the console has none of.
          if (warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning);
        },
      },
    },
    plugins: [compressFiles()],
    server: {
      proxy: { "^/(console/api/|onceward\\.v1\\.)": SERVER },
    },
  };
});
