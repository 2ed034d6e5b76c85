// The events that the log screen shows: pages from the server, and new events as they come.
//
// Invariants:
// - The entries are in the order of the log, without gaps inside the loaded range.
// - New events are added only while the range reaches the end of the log and the reader has not paused it.

import { batch, computed, signal } from "@preact/signals";

import { type ApiError, getJson, toApiError } from "../api_client";
import { EVENT_TYPES, type LogEntry, type LogPage } from "../api_types";
import { reloads, restores, subscribeToLog } from "../event_stream";

const PAGE_SIZE = 100;
/** The positions after a linked one that are loaded with it. */
const NEWER_CONTEXT = 30;
/** The positions that one request for newer events covers. The server cuts no page of this size. */
const NEWER_STEP = 200;
/** The empty steps after which a search for newer events asks the reader to go on. */
const MAX_EMPTY_STEPS = 10;
/** The rows of a page that follows the log. */
const MAX_ENTRIES = 2000;
/** New events are drawn together at most this often, in milliseconds. */
const FLUSH_INTERVAL = 150;

const KNOWN_TYPES: ReadonlySet<string> = new Set(EVENT_TYPES);

/** Which events the screen shows. */
export interface LogFilter {
  types: string[];
  task: string;
  session: string;
}

/** Writes a filter as parameters of an address, in a fixed order. */
export function writeLogFilter(filter: LogFilter): URLSearchParams {
  const parameters = new URLSearchParams();
  if (filter.types.length > 0) parameters.set("type", filter.types.join(","));
  if (filter.task !== "") parameters.set("task", filter.task);
  if (filter.session !== "") parameters.set("session", filter.session);
  return parameters;
}

function matchesFilter(entry: LogEntry, filter: LogFilter): boolean {
  // A fact has the type that its hook gave it.
  const type = KNOWN_TYPES.has(entry.type) ? entry.type : "fact_logged";
  return (
    (filter.types.length === 0 || filter.types.includes(type)) &&
    (filter.task === "" || entry.task === filter.task) &&
    (filter.session === "" || entry.session === filter.session)
  );
}

export class LogFeed {
  readonly entries = signal<LogEntry[]>([]);
  readonly hasOlder = signal(false);
  readonly isLoading = signal(false);
  readonly error = signal<ApiError | null>(null);
  readonly isPaused = signal(false);
  /** The new events that wait while the reader has paused the screen. */
  readonly waiting = signal<LogEntry[]>([]);
  /** The position after the loaded range; null while it reaches the end of the log. */
  readonly rangeEnd = signal<number | null>(null);
  readonly isLive = computed(() => this.rangeEnd.value === null);
  private received: LogEntry[] = [];
  private timer: number | undefined;
  /** The number of the last full load: answers to earlier ones are dropped. */
  private generation = 0;

  constructor(readonly filter: LogFilter) {}

  /** Receives new events. Returns how to stop that. */
  follow(): () => void {
    const unsubscribeLog = subscribeToLog((entry) => {
      if (!matchesFilter(entry, this.filter)) return;
      this.received.push(entry);
      this.timer ??= window.setTimeout(() => this.flush(), FLUSH_INTERVAL);
    });
    let seenReloads = reloads.peek();
    let seenRestores = restores.peek();
    const unsubscribeReloads = reloads.subscribe((count) => {
      if (count === seenReloads) return;
      seenReloads = count;
      // An earlier part of the log stays as it is, unless it may be of another log.
      const isOtherLog = restores.peek() !== seenRestores;
      seenRestores = restores.peek();
      if (isOtherLog) this.received = [];
      if (isOtherLog || this.isLive.peek()) void this.loadNewest();
    });
    return () => {
      unsubscribeLog();
      unsubscribeReloads();
      window.clearTimeout(this.timer);
      this.generation += 1;
    };
  }

  contains(seq: number): boolean {
    return this.entries.peek().some((entry) => entry.seq === seq);
  }

  loadNewest(): Promise<void> {
    return this.loadRange(null);
  }

  /** Loads the events around a position. */
  loadAround(seq: number): Promise<void> {
    return this.loadRange(seq + NEWER_CONTEXT + 1);
  }

  async loadOlder(): Promise<void> {
    const first = this.entries.peek()[0];
    if (!first || this.isLoading.peek()) return;
    await this.request(first.seq, PAGE_SIZE, (page) => {
      this.entries.value = [...page.entries, ...this.entries.peek()];
      this.hasOlder.value = page.entries.length === PAGE_SIZE;
    });
  }

  /** Extends the range towards the end of the log, at least to the next event that matches. */
  async loadNewer(): Promise<void> {
    let isFound = false;
    for (let step = 0; step < MAX_EMPTY_STEPS && !isFound; step += 1) {
      const start = this.rangeEnd.peek();
      if (start === null || this.isLoading.peek()) return;
      const isDone = await this.request(start + NEWER_STEP, NEWER_STEP, (page) => {
        const newer = page.entries.filter((entry) => entry.seq >= start);
        isFound = newer.length > 0;
        this.entries.value = [...this.entries.peek(), ...newer];
        this.rangeEnd.value = start + NEWER_STEP > page.head ? null : start + NEWER_STEP;
        this.takeReceived();
      });
      if (!isDone) return;
    }
  }

  setPaused(isPaused: boolean): void {
    batch(() => {
      this.isPaused.value = isPaused;
      if (!isPaused) {
        this.append(this.waiting.peek());
        this.waiting.value = [];
      }
    });
  }

  private async loadRange(before: number | null): Promise<void> {
    this.generation += 1;
    this.isLoading.value = false;
    await this.request(before, PAGE_SIZE, (page) => {
      this.entries.value = page.entries;
      this.hasOlder.value = page.entries.length === PAGE_SIZE;
      this.rangeEnd.value = before === null || before > page.head ? null : before;
      this.waiting.value = [];
      this.takeReceived();
    });
  }

  /** Asks the server for a page. Returns whether its answer was used. */
  private async request(before: number | null, limit: number, use: (page: LogPage) => void): Promise<boolean> {
    const own = this.generation;
    const parameters = writeLogFilter(this.filter);
    parameters.set("limit", String(limit));
    if (before !== null) parameters.set("before", String(before));
    this.isLoading.value = true;
    try {
      const page = await getJson<LogPage>(`/api/log?${parameters}`);
      if (own !== this.generation) return false;
      batch(() => {
        this.error.value = null;
        this.isLoading.value = false;
        use(page);
      });
      return true;
    } catch (thrown) {
      if (own !== this.generation) return false;
      batch(() => {
        this.error.value = toApiError(thrown);
        this.isLoading.value = false;
      });
      return false;
    }
  }

  private flush(): void {
    this.timer = undefined;
    // What comes during a load is added after it.
    if (!this.isLoading.peek()) batch(() => this.takeReceived());
  }

  private takeReceived(): void {
    const received = this.received;
    this.received = [];
    if (!this.isLive.peek()) return;
    if (this.isPaused.peek()) this.waiting.value = [...this.waiting.peek(), ...received];
    else this.append(received);
  }

  private append(received: LogEntry[]): void {
    const last = this.entries.peek().at(-1)?.seq ?? 0;
    const newer = received.filter((entry) => entry.seq > last);
    if (newer.length === 0) return;
    const all = [...this.entries.peek(), ...newer];
    if (all.length > MAX_ENTRIES) this.hasOlder.value = true;
    this.entries.value = all.slice(-MAX_ENTRIES);
  }
}
