import { betaProbability, gammaProbability, solve } from "./special-functions.ts";

/** An interval that contains the true value with the given confidence, or more. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * Returns the bound that a share of `hits` in `trials` stays below with a confidence, by Clopper and Pearson
 * (1934): exact for independent trials, however few.
 */
export function shareUpperBound(hits: number, trials: number, confidence: number): number {
  if (trials <= 0 || hits >= trials) return 1;
  // Without hits the beta distribution has a closed form, which stays exact for billions of trials.
  if (hits === 0) return -Math.expm1(Math.log1p(-confidence) / trials);
  return solve((x) => betaProbability(hits + 1, trials - hits, x), confidence, 0, 1);
}

/** Returns the two-sided interval of a share, by Clopper and Pearson. */
export function shareInterval(hits: number, trials: number, confidence: number): Interval {
  const tail = (1 - confidence) / 2;
  return {
    low: hits === 0 ? 0 : solve((x) => betaProbability(hits, trials - hits + 1, x), tail, 0, 1),
    high: shareUpperBound(hits, trials, 1 - tail),
  };
}

/**
 * Returns how many observations without a hit say, with a confidence, that the share of hits is at most
 * `share`: the order statistic behind "p99.99 with 95 % takes 29,956 observations with none beyond".
 */
export function observationsNeeded(share: number, confidence: number): number {
  return Math.ceil(Math.log1p(-confidence) / Math.log1p(-share));
}

/** A sum of weights of independent events, such as 2^s for each sampled one, or the repeats of one day. */
export interface WeightedSum {
  readonly sum: number;
  /** The sum of the squared weights. */
  readonly squares: number;
  /** The largest weight of an event; also of one that could have been seen, and was not. */
  readonly largest: number;
}

/**
 * Returns the interval of the expected sum of weighted events, by Fay and Feuer (1997): the exact interval of
 * Poisson events if all weights are equal, and wider than needed if they differ. It also covers the number of
 * which events are a binomial sample, because that varies less.
 */
export function sumInterval(weighted: WeightedSum, confidence: number): Interval {
  const tail = (1 - confidence) / 2;
  const { sum, squares } = weighted;
  const low = sum === 0 ? 0 : (squares / sum) * gammaQuantile((sum * sum) / squares, tail);
  return { low, high: sumUpperBound(weighted, 1 - tail) };
}

/** Returns the bound that the expected sum stays below with a confidence. */
export function sumUpperBound({ sum, squares, largest }: WeightedSum, confidence: number): number {
  if (largest === 0) return 0;
  const [mean, variance] = [sum + largest, squares + largest * largest];
  return (variance / mean) * gammaQuantile((mean * mean) / variance, confidence);
}

/** From this shape on, the approximation of Wilson and Hilferty is exact to 6 digits. */
const LARGE_SHAPE = 5000;

function gammaQuantile(shape: number, probability: number): number {
  const spread = 12 * Math.sqrt(shape) + 50;
  if (shape > LARGE_SHAPE) {
    const z = normalQuantile(probability);
    return shape * (1 - 1 / (9 * shape) + z / (3 * Math.sqrt(shape))) ** 3;
  }
  return solve((x) => gammaProbability(shape, x), probability, 0, shape + spread);
}

/** The normal distribution by its relation to the gamma distribution with shape 1/2. */
function normalQuantile(probability: number): number {
  if (probability < 0.5) return -normalQuantile(1 - probability);
  return Math.sqrt(2 * solve((x) => gammaProbability(0.5, x), 2 * probability - 1, 0, 50));
}
