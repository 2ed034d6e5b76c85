// Times relative to now, with the exact time beside them.

import { signal } from "@preact/signals";

import { formatDuration, formatExactTime, formatRelativeTime } from "../formats";

const TICK_INTERVAL = 5000;
const MINUTE = 60_000;

/** One clock for all times of the page. */
const clock = signal(Date.now());

export function startClock(): void {
  window.setInterval(() => {
    if (document.visibilityState === "visible") clock.value = Date.now();
  }, TICK_INTERVAL);
}

export function RelativeTime({ at }: { at: number }) {
  if (at <= 0) return <span class="muted">unknown</span>;
  const exact = formatExactTime(at);
  // The clock ticks rarely, so that an event can be newer than it.
  const now = Math.max(clock.value, Math.min(at, Date.now()));
  return (
    <time class="time" dateTime={new Date(at).toISOString()} title={exact}>
      {formatRelativeTime(at, now)}
    </time>
  );
}

/** The time between two moments. Without an end, it runs until now. */
export function Duration({ from, to }: { from: number; to: number | null }) {
  const end = to ?? Math.max(clock.value, from);
  // The clock ticks too rarely for the seconds of something that goes on.
  const took = Math.max(0, end - from);
  const shown = to === null && took > MINUTE ? Math.floor(took / MINUTE) * MINUTE : took;
  const title = `${formatExactTime(from)} – ${to === null ? "now" : formatExactTime(to)}`;
  return (
    <span class="time" title={title}>
      {formatDuration(shown)}
    </span>
  );
}
