/*
 * The distribution functions that confidence intervals are made of, after "Numerical Recipes", chapter 6: series
 * and continued fractions, to about 12 digits.
 */

const EPSILON = 1e-15;
const TINY = 1e-300;
/** More than any argument of `intervals.ts` needs: the number grows with the root of the shape. */
const MAX_STEPS = 10_000;

/** Coefficients of Lanczos' approximation with g = 7. */
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
] as const;

/** Returns the logarithm of the gamma function of a positive number. */
export function logGamma(x: number): number {
  const [first, ...others] = LANCZOS;
  const sum = others.reduce((total, coefficient, i) => total + coefficient / (x + i), first as number);
  const t = x + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

/** Returns the probability that a gamma variable of a shape, with scale 1, is at most x. */
export function gammaProbability(shape: number, x: number): number {
  if (x <= 0) return 0;
  const factor = Math.exp(shape * Math.log(x) - x - logGamma(shape));
  if (x >= shape + 1) return 1 - factor * gammaFraction(shape, x);
  let term = 1 / shape;
  let sum = term;
  for (let n = 1; n < MAX_STEPS && term > sum * EPSILON; n++) {
    term *= x / (shape + n);
    sum += term;
  }
  return sum * factor;
}

function gammaFraction(shape: number, x: number): number {
  return continuedFraction(x + 1 - shape, (n) => [-n * (n - shape), x + 2 * n + 1 - shape]);
}

/** Returns the probability that a beta variable is at most x. */
export function betaProbability(a: number, b: number, x: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const factor = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  // The fraction converges fast below the mean.
  if (x < (a + 1) / (a + b + 2)) return (factor * betaFraction(a, b, x)) / a;
  return 1 - (factor * betaFraction(b, a, 1 - x)) / b;
}

function betaFraction(a: number, b: number, x: number): number {
  return continuedFraction(1, (n) => {
    const m = Math.floor(n / 2);
    const numerator =
      n % 2 === 0
        ? (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m))
        : (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    return [numerator, 1];
  });
}

/** Returns 1 / (b0 + a1 / (b1 + a2 / (b2 + …))) by Lentz' method. */
function continuedFraction(first: number, termOf: (n: number) => readonly [a: number, b: number]): number {
  let value = nonZero(first);
  let numerator = value;
  let denominator = 0;
  for (let n = 1; n < MAX_STEPS; n++) {
    const [a, b] = termOf(n);
    denominator = 1 / nonZero(b + a * denominator);
    numerator = nonZero(b + a / numerator);
    const ratio = numerator * denominator;
    value *= ratio;
    if (Math.abs(ratio - 1) < EPSILON) break;
  }
  return 1 / value;
}

function nonZero(value: number): number {
  return Math.abs(value) < TINY ? TINY : value;
}

/** Returns the argument between two bounds at which an increasing function reaches a value, by bisection. */
export function solve(increasing: (x: number) => number, value: number, low: number, high: number): number {
  let [below, above] = [low, high];
  // Halves until the doubles between the bounds are used up.
  for (let i = 0; i < 200; i++) {
    const middle = (below + above) / 2;
    if (middle <= below || middle >= above) break;
    if (increasing(middle) < value) below = middle;
    else above = middle;
  }
  return (below + above) / 2;
}
