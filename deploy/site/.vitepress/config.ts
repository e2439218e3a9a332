import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";
import { VERSION } from "../../../server/src/version.ts";
import { GROUPS } from "../pages.ts";
import { drawDiagrams } from "./diagrams.ts";

const { repository } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));

/** Anchors as the forge makes them, so that a link to a heading works there and here. */
function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

/** Makes the empty header of a column a cell: a screen reader announces no header without a text. */
function makeEmptyHeadersCells({
  tokens,
}: {
  readonly tokens: { type: string; content: string; tag: string }[];
}): void {
  for (const [index, token] of tokens.entries()) {
    if (token.type !== "th_open" || tokens[index + 1]?.content !== "") continue;
    token.tag = "td";
    const close = tokens[index + 2];
    if (close !== undefined) close.tag = "td";
  }
}

const TITLES = new Map(GROUPS.flatMap(({ pages }) => pages.map(({ slug, title }) => [slug, title])));

/** Returns a word as the search compares it; null for one that every page has. Pages get its text, so it refers to nothing. */
function searchTerm(term: string): string | null {
  return /^(?:.|an|and|are|as|at|by|do|for|how|i|in|is|it|of|on|or|the|to|what|with)$/i.test(term)
    ? null
    : term.toLowerCase();
}

export default defineConfig({
  title: "Onceward",
  description: "Idempotency as a service: ask before a side effect, report afterwards, and it happens once.",
  lang: "en",
  srcDir: ".build",
  outDir: "dist",
  cleanUrls: true,
  lastUpdated: false,
  // Otherwise the first page loads every page that it links to.
  router: { prefetchLinks: false },
  transformHead: ({ siteData }) => [["link", { rel: "icon", href: `${siteData.base}logo.svg` }]],
  // The first page is wide, and begins with its purpose.
  transformPageData(page) {
    if (page.relativePath === "index.md")
      Object.assign(page.frontmatter, { pageClass: "first", aside: false });
  },
  ignoreDeadLinks: "localhostLinks",
  markdown: {
    anchor: { slugify },
    toc: { slugify },
    headers: { slugify },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    image: { lazyLoading: true },
    config(md) {
      md.core.ruler.push("empty_headers", makeEmptyHeadersCells);
      drawDiagrams(md);
    },
  },
  themeConfig: {
    logo: "/logo.svg",
    outline: [2, 3],
    search: {
      provider: "local",
      options: {
        // A hit shows the page's name in the navigation, not that of a package.
        _render(src, env, md) {
          const title = TITLES.get(env.relativePath.replace(/\.md$/, ""));
          const html: string = md.render(src, env);
          return title === undefined ? html : html.replace(/(?<=<h1[^>]*>).*?(?=<a )/, `${title} `);
        },
        miniSearch: {
          options: { processTerm: searchTerm },
          searchOptions: { combineWith: "AND", fuzzy: false, boost: { title: 8, titles: 3, text: 1 } },
        },
      },
    },
    nav: [
      { text: "Tutorial", link: "/tutorial" },
      { text: "Playground", link: "/playground" },
      { text: "API", link: "/api" },
      { text: "Runbook", link: "/runbook" },
      {
        text: VERSION,
        items: [
          { text: "Changelog", link: "/changelog" },
          { text: "Other versions", link: `${repository}/releases` },
        ],
      },
    ],
    sidebar: GROUPS.map(({ title, pages }) => ({
      text: title,
      items: pages.map((page) => ({ text: page.title, link: page.slug === "index" ? "/" : `/${page.slug}` })),
    })),
  },
  vite: {
    // The playground imports the client's sources, whose connections by Node no page opens.
    build: { rollupOptions: { shimMissingExports: true } },
    resolve: { conditions: ["@onceward/source", "module", "browser", "development|production"] },
    // Its esbuild does not know the target of the repository's tsconfig.json.
    esbuild: { tsconfigRaw: { compilerOptions: { target: "es2022" } } },
  },
});
