/** Letters that a misspelt name may have wrong: two neighbours in the wrong order are two. */
const MAX_EDITS = 2;
/** In shorter names, so many wrong letters make another word. */
const MIN_LENGTH = 5;

/** Returns the name of which another one is probably a misspelling; undefined: none. Names that differ in their digits are not. */
export function similarName(name: string, known: readonly string[]): string | undefined {
  const lettersOf = (text: string) => text.replace(/\d/g, "");
  return known.find(
    (each) =>
      Math.min(each.length, name.length) >= MIN_LENGTH &&
      lettersOf(each) !== lettersOf(name) &&
      editsBetween(each, name) <= MAX_EDITS,
  );
}

/** Returns how many letters have to be added, removed or replaced. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, replaced));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
