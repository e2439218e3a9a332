/** Joiners and selectors that are a part of an emoji: they are seen by what they change. */
const IN_EMOJI = /(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)(?:\u200d|\ufe0f)/u;
/** Controls but the line feed, characters without a width, and those that reverse the text around them. */
const INVISIBLE = /(?!\n)[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u;
const EMOJI_OR_INVISIBLE = new RegExp(`${IN_EMOJI.source}|(${INVISIBLE.source})`, "gu");

/** A part of a text: as it is, or a character that a person would not see. */
export interface TextPart {
  readonly text: string;
  readonly isInvisible: boolean;
}

/** Returns a text in parts: invisible characters, and those that reorder others, apart. */
export function partsOf(text: string): readonly TextPart[] {
  const parts: TextPart[] = [];
  let from = 0;
  for (const { 1: invisible, index } of text.matchAll(EMOJI_OR_INVISIBLE)) {
    if (invisible === undefined) continue;
    if (index > from) parts.push({ text: text.slice(from, index), isInvisible: false });
    parts.push({ text: invisible, isInvisible: true });
    from = index + invisible.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isInvisible: false });
  return parts;
}

/** Returns the name of a character, such as "U+202E". */
export function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
