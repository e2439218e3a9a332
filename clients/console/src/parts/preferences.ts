import { createStore, ofStorage } from "../session/store.ts";

/** What a person chooses for this browser, by name; the first choice is the default. */
const CHOICES = {
  theme: ["system", "light", "dark"],
  times: ["relative", "exact"],
  shortcuts: ["on", "off"],
} as const;

type Name = keyof typeof CHOICES;
type Choice<N extends Name> = (typeof CHOICES)[N][number];

const chosen = createStore(Object.fromEntries(Object.keys(CHOICES).map((name) => [name, readStored(name)])));

/** Returns what was chosen, and the function that chooses. A browser that stores nothing forgets it with the page. */
export function usePreference<N extends Name>(name: N): readonly [Choice<N>, (next: Choice<N>) => void] {
  chosen.use();
  return [read(name), (next) => choose(name, next)];
}

/** Shows the page in the colours that were chosen. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = read("theme");
}

function read<N extends Name>(name: N): Choice<N> {
  const known: readonly Choice<N>[] = CHOICES[name];
  return known.find((choice) => choice === chosen.get()[name]) ?? (known[0] as Choice<N>);
}

function choose(name: Name, next: string): void {
  chosen.set({ ...chosen.get(), [name]: next });
  applyTheme();
  // Where the browser forbids it, the choice holds until the page is left.
  ofStorage(() => localStorage.setItem(keyOf(name), next), undefined);
}

function readStored(name: string): string | null {
  return ofStorage(() => localStorage.getItem(keyOf(name)), null);
}

function keyOf(name: string): string {
  return `onceward.console.${name}`;
}
