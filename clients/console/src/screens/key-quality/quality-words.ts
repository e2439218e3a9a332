/** Returns where an interval of shares from 0 to 1 and its estimate are in a picture of a given width, in its units. It is never narrower than a unit, so that it is seen. */
export function placeInterval(low: number, share: number, high: number, width: number) {
  const place = (value: number) => Math.min(1, Math.max(0, value)) * width;
  const wide = Math.max(1, place(high) - place(low));
  return { from: Math.min(place(low), width - wide), width: wide, at: place(share) };
}
