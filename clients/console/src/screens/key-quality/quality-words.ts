/** Where an interval and its estimate are in a picture of a given width, in its units. */
export interface IntervalPicture {
  readonly from: number;
  readonly width: number;
  readonly at: number;
}

/** Places an interval of shares from 0 to 1. It is never narrower than a unit, so that it is seen. */
export function placeInterval(low: number, share: number, high: number, width: number): IntervalPicture {
  const place = (value: number) => Math.min(1, Math.max(0, value)) * width;
  const wide = Math.max(1, place(high) - place(low));
  return { from: Math.min(place(low), width - wide), width: wide, at: place(share) };
}
