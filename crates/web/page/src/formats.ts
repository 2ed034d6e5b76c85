// Numbers, durations and times as text.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const counts = new Intl.NumberFormat("en-US");
const exactTimes = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const daysWithYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

export function formatCount(count: number): string {
  return counts.format(count);
}

/** Formats a number of tokens with at most three digits: `950`, `12.3k`, `4.1M`. */
export function formatTokens(tokens: number): string {
  const units = [
    { size: 1e9, name: "G" },
    { size: 1e6, name: "M" },
    { size: 1e3, name: "k" },
  ];
  // A number just below a unit would round up to four digits.
  const unit = units.find(({ size }) => tokens >= size * 0.9995);
  if (unit === undefined) return String(Math.round(tokens));
  const value = tokens / unit.size;
  return `${value < 99.95 ? value.toFixed(1) : Math.round(value)}${unit.name}`;
}

export function formatMoney(dollars: number | null): string {
  if (dollars === null) return "no price";
  if (dollars > 0 && dollars < 0.01) return "< $0.01";
  return `$${dollars.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** Formats a duration with its two largest units: `850 ms`, `12.4 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / SECOND).toFixed(ms < 10 * SECOND ? 1 : 0)} s`;
  const pairs: [number, string, number, string][] = [
    [DAY, "d", HOUR, "h"],
    [HOUR, "h", MINUTE, "min"],
    [MINUTE, "min", SECOND, "s"],
  ];
  for (const [large, largeName, small, smallName] of pairs) {
    const whole = Math.round(ms / small) * small;
    if (whole < large) continue;
    const rest = Math.round((whole % large) / small);
    const first = `${Math.floor(whole / large)} ${largeName}`;
    return rest === 0 ? first : `${first} ${rest} ${smallName}`;
  }
  return `${Math.round(ms / SECOND)} s`;
}

/** Formats a moment in the past or the future, as people say it. */
export function formatRelativeTime(at: number, now: number): string {
  const distance = Math.abs(now - at);
  const isPast = at <= now;
  const say = (text: string) => (isPast ? `${text} ago` : `in ${text}`);
  if (distance < 5 * SECOND) return "now";
  if (distance < MINUTE) return say(`${Math.floor(distance / SECOND)} s`);
  if (distance < HOUR) return say(`${Math.floor(distance / MINUTE)} min`);
  if (distance < DAY) return say(`${Math.floor(distance / HOUR)} h`);
  if (distance < 7 * DAY) return say(`${Math.floor(distance / DAY)} d`);
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return (sameYear ? days : daysWithYear).format(at);
}

/** Formats a moment as `2026-11-19 10:14:02`, local time. */
export function formatExactTime(at: number): string {
  return exactTimes.format(at);
}

/** Formats a moment as `10:14:02`, local time; with its day if that is not the day of `now`. */
export function formatClockTime(at: number, now: number): string {
  const exact = exactTimes.format(at);
  const [day, time] = exact.split(" ");
  return time !== undefined && exactTimes.format(now).startsWith(`${day} `) ? time : exact;
}

const IRREGULAR_PLURALS: Record<string, string> = { reply: "replies", dependency: "dependencies", entry: "entries" };

export function pluralize(count: number, noun: string): string {
  const plural = IRREGULAR_PLURALS[noun] ?? `${noun}s`;
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** Writes a name of the engine for people: `needs_continuation` becomes `needs continuation`. */
export function spellOut(name: string): string {
  return name.replaceAll("_", " ");
}
