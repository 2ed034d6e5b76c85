// The round values beside the grid lines of a chart.

const ROUND_STEPS = [1, 2, 2.5, 5, 10] as const;
const WANTED_INTERVALS = 4;

/** Returns a few round values from zero to at least `largest`. Steps are at least `smallestStep`. */
export function listAxisTicks(largest: number, smallestStep = 0): number[] {
  const rough = Math.max(largest / WANTED_INTERVALS, smallestStep, Number.EPSILON);
  const power = 10 ** Math.floor(Math.log10(rough));
  // Ten times the power is at least as large as the rough step, except for rounding errors.
  const factor = ROUND_STEPS.find((round) => round * power >= rough) ?? 10;
  const step = factor * power;
  const count = Math.max(1, Math.ceil(largest / step));
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}
