import { copyFile, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, normalize } from "node:path";
import type { Page } from "./pages.ts";

/** Where pages come from and go to. */
export interface Staging {
  /** The repository's folder. */
  readonly root: string;
  /** The folder that the generator reads. */
  readonly target: string;
  /** The address of the repository's page, for links to files that are not pages. */
  readonly repository: string;
}

/** A link or an image; its text may contain brackets. */
const LINK = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;
/** `src` and `srcset` of an HTML element. */
const SOURCE = /\b(src|srcset)="([^":]+)"/g;
const CODE_BLOCK = /(^ *```[\s\S]*?^ *```$)/gm;
/** The clients' languages, by the names of their blocks. */
const LANGUAGES: Readonly<Record<string, string>> = {
  js: "TypeScript",
  ts: "TypeScript",
  python: "Python",
  go: "Go",
};
/** Where a reader of the first page goes next, below its first paragraph. */
const ACTIONS = "[Start in five minutes](/tutorial) [Playground](/playground) [How it works](/concepts)";
/** Blocks of these languages with nothing but empty lines between them. */
const SAME_CODE = /(?:^```(?:js|ts|python|go)\n(?:(?!^```$)[\s\S])*^```\n\n?){2,}/gm;

/**
 * Writes every page for the generator, under its slug. A link to another page leads to that page; a link to any other file of the
 * repository leads to the repository's page; pictures are copied.
 *
 * @throws Error if a link leads to a file that does not exist.
 */
export async function stagePages(pages: readonly Page[], staging: Staging): Promise<void> {
  const slugs = new Map(pages.map(({ source, slug }) => [source, slug]));
  await mkdir(join(staging.target, "public"), { recursive: true });
  for (const page of pages) {
    const text = await textOf(page, staging.root);
    const pictures = new Set<string>();
    const linked = new Set<string>();
    const staged = outsideCode(text, (prose) =>
      escapeTemplates(prose)
        .replace(LINK, (_, mark: string, label: string, target: string) =>
          mark === "!" ? `![${label}](${picture(target)})` : link(label, target),
        )
        .replace(SOURCE, (_, name: string, target: string) => `${name}="${picture(target)}"`),
    );
    const begun = page.slug === "index" ? staged.replace(/^#[^\n]+\n\n.+?\n\n/s, `$&${ACTIONS}\n\n`) : staged;
    await writeFile(join(staging.target, `${page.slug}.md`), withTabs(begun));
    for (const file of pictures) {
      await copyFile(join(staging.root, file), join(staging.target, "public", basename(file)));
    }
    for (const file of linked) await stat(join(staging.root, file));

    function picture(target: string): string {
      const file = fromRoot(page, target);
      pictures.add(file);
      return `/${basename(file)}`;
    }

    function link(label: string, target: string): string {
      if (/^[a-z]+:/.test(target) || target.startsWith("#")) return `[${label}](${target})`;
      const [path = "", anchor] = target.split("#");
      const file = fromRoot(page, path);
      linked.add(file);
      const slug = slugs.get(file) ?? slugs.get(join(file, "README.md"));
      const suffix = anchor === undefined ? "" : `#${anchor}`;
      if (slug !== undefined) return `[${label}](/${slug}${suffix})`;
      return `[${label}](${staging.repository}/${extname(file) === "" ? "tree" : "blob"}/main/${file}${suffix})`;
    }
  }
}

/** Returns a page in which the same code in several languages is a group of tabs of the generator. */
function withTabs(text: string): string {
  return text.replace(SAME_CODE, (blocks) => {
    const opened = [...blocks.matchAll(/^```(\w+)$/gm)].map(([, name = ""]) => LANGUAGES[name]);
    if (new Set(opened).size < opened.length) return blocks;
    const named = blocks.replace(/^```(\w+)$/gm, (fence, name: string) => `${fence} [${LANGUAGES[name]}]`);
    return `::: code-group\n\n${named.trimEnd()}\n\n:::\n\n`;
  });
}

/** Returns a page as Markdown. A program becomes a page of its first comment and its code. */
async function textOf({ source, title }: Page, root: string): Promise<string> {
  const text = await readFile(join(root, source), "utf8");
  if (extname(source) === ".md") return text;
  const [comment = "", ...code] = text.split(/(?<=^ \*\/\n)/m);
  const about = comment
    .split("\n")
    .map((line) => line.replace(/^\/?\*+\/?|^ \*\/?/, "").trim())
    .join(" ")
    .trim();
  return `# ${title}\n\n${about}\n\n\`\`\`ts\n${code.join("").trim()}\n\`\`\`\n`;
}

/** Returns the path from the root of a link's target in a page. */
function fromRoot(page: Page, target: string): string {
  return normalize(join(dirname(page.source), target)).replace(/\/$/, "");
}

/** Changes a text outside its code blocks and code spans; a span may be inside what is changed, such as a link's text. */
function outsideCode(text: string, change: (prose: string) => string): string {
  return text
    .split(CODE_BLOCK)
    .map((part, index) => (index % 2 === 1 ? part : outsideSpans(part, change)))
    .join("");
}

function outsideSpans(text: string, change: (prose: string) => string): string {
  const spans: string[] = [];
  const masked = text.replace(
    /(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)/gs,
    (span) => `\u0000${spans.push(span) - 1}\u0000`,
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no text contains it, so that it marks a span.
  return change(masked).replace(/\u0000(\d+)\u0000/g, (_, index: string) => spans[Number(index)] ?? "");
}

/** Vue would read two braces as an expression, and `<` before a word as an element; pictures are the only ones that pages have. */
function escapeTemplates(prose: string): string {
  return prose
    .replaceAll("{{", "&#123;&#123;")
    .replace(/<(?=\/?[a-z])(?!\/?(?:picture|source|img|https?:|ClientOnly|Playground)\b)/gi, "&lt;");
}
