/** A value's name as people read it, such as "in progress"; its number if a newer service has it. */
export function enumName(names: Readonly<Record<string, number>>, value: number): string {
  const [name] = Object.entries(names).find(([, number]) => number === value) ?? [];
  return name?.toLowerCase().replaceAll("_", " ") ?? `${value}`;
}
