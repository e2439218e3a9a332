import { renderMermaidSVG } from "beautiful-mermaid";

/** The parts of markdown-it, and of the tokens of a page, that diagrams need. */
interface Markdown {
  readonly renderer: { readonly rules: { fence?: Rule | undefined } };
  readonly utils: { escapeHtml(text: string): string };
}
type Rule = (
  tokens: { type: string; content: string; info: string }[],
  index: number,
  // biome-ignore lint/suspicious/noExplicitAny: handed on to the generator's own rule as they are.
  ...rest: any[]
) => string;

/** The generator's colours, which change with its switch for dark pages, and more room than the renderer's default. */
const OPTIONS = {
  bg: "var(--vp-c-bg)",
  fg: "var(--vp-c-text-1)",
  muted: "var(--vp-c-text-2)",
  line: "var(--vp-c-text-3)",
  border: "var(--vp-c-text-3)",
  transparent: true,
  padding: 16,
  nodeSpacing: 40,
  layerSpacing: 56,
};

/**
 * Draws each Mermaid block as SVG while the site is built, with its text below it for readers who hear the page: the page loads no
 * renderer and no font.
 *
 * @throws Error if the renderer does not know the kind of the diagram.
 */
export function drawDiagrams(markdown: Markdown): void {
  const { fence } = markdown.renderer.rules;
  markdown.renderer.rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token?.info.trim() !== "mermaid") return fence?.(tokens, index, ...rest) ?? "";
    const heading = tokens.findLastIndex(({ type }, at) => type === "heading_open" && at < index);
    const title = markdown.utils.escapeHtml(`Diagram: ${tokens[heading + 1]?.content ?? ""}`);
    const svg = inPage(renderMermaidSVG(token.content, OPTIONS), index).replace(
      "<svg ",
      `<svg role="img" aria-label="${title}" `,
    );
    const text = markdown.utils.escapeHtml(token.content.trim());
    return (
      `<figure class="diagram" v-pre><div class="drawing" tabindex="0" role="group" aria-label="${title}">${svg}</div>` +
      `<details><summary>The diagram as text</summary><pre tabindex="0"><code>${text}</code></pre></details></figure>`
    );
  };
}

/**
 * Returns a drawing that may be beside others in a page: its style sheet, which would apply to the whole page and load a font from
 * another server, is in `theme/style.css`, and its ids are its own.
 */
function inPage(svg: string, index: number): string {
  return svg
    .replace(/<style>[\s\S]*?<\/style>/, "")
    .replace(/(\bid="|url\(#)((?:seq-)?arrow[a-z-]*)/g, `$1diagram-${index}-$2`);
}
